#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "report/page.h"
#include "report/record_file.h"
#include "report/text.h"
#include "strobe/error.h"

namespace strobe::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> records{};
  std::string output{};
  bool force = false;
  lab::PageOptions page{};
};

[[noreturn]] void refuse_output(const std::string& path, const std::string& why) {
  throw InvalidArgument("-o", fmt::format("'{}' {}", path, why));
}

/// Before any work: what is there stays there, unless it is to be replaced and can be.
void check_output(const ReportOptions& o) {
  std::error_code none;
  if (!fs::exists(o.output, none)) return;
  if (!fs::is_regular_file(o.output, none)) refuse_output(o.output, "is not a file");
  if (!o.force) {
    refuse_output(o.output, "exists already; name another file, or add --force to replace it");
  }
  for (const std::string& path : o.records) {
    if (fs::equivalent(path, o.output, none)) refuse_output(o.output, "is one of the records");
  }
}

std::vector<nlohmann::json> read_all(const std::vector<std::string>& paths) {
  std::vector<nlohmann::json> records;
  for (const std::string& path : paths) {
    for (nlohmann::json& record : lab::read_records(path)) records.push_back(std::move(record));
  }
  if (records.empty()) {
    throw InvalidArgument("records", fmt::format("there is none in {}; --json of bench, compare or "
                                                 "verify writes them",
                                                 fmt::join(paths, ", ")));
  }
  return records;
}

/// Writes beside the file and then renames, so that a full disk costs no page that was there.
void write_page(const std::string& path, const std::string& page) {
  const std::string draft = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(draft.c_str(), "wx");
  if (file == nullptr) {
    refuse_output(path, fmt::format("cannot be written: {}", std::strerror(errno)));
  }
  const bool written = std::fwrite(page.data(), 1, page.size(), file) == page.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(draft.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  std::remove(draft.c_str());
  refuse_output(path, fmt::format("cannot be written: {}", std::strerror(reason)));
}

int report(const ReportOptions& o) {
  check_output(o);
  const std::vector<nlohmann::json> records = read_all(o.records);
  const std::string page = lab::render_page(records, o.page);
  write_page(o.output, page);
  fmt::print("Wrote {} ({}).\n", o.output, lab::bytes_text(static_cast<std::int64_t>(page.size())));
  return kDone;
}

}  // namespace

void add_report(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("report", "Result records in, one HTML page with plots out");
  auto o = std::make_shared<ReportOptions>();
  command->add_option("RECORDS", o->records, "Files that --json of the other commands wrote")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--output", o->output, "The page to write; it needs no other file")
      ->required()
      ->type_name("FILE");
  command->add_flag("--force", o->force, "Let -o replace a file that exists");
  command->add_option("--title", o->page.title, "Heading of the page")
      ->type_name("TEXT")
      ->capture_default_str();
  command->footer(
      "Example:\n  strobe compare --quick --problem \"b1 s256 h2 d64 fp32\" --json records.jsonl "
      "&& strobe report records.jsonl -o report.html");
  command->callback([&status, o] { status = report(*o); });
}

}  // namespace strobe::cli
