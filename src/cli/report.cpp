#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/output_file.h"
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

/// Before any work: what is there stays there, unless it is to be replaced and can be.
void check_output(const ReportOptions& o) {
  require_output("-o", o.output, o.force);
  std::error_code none;
  for (const std::string& path : o.records) {
    if (fs::equivalent(path, o.output, none))
      throw InvalidArgument("-o", fmt::format("'{}' is one of the records", o.output));
  }
}

/// The results: records of another kind have a place beside them, but not on the page.
std::vector<nlohmann::json> read_all(const std::vector<std::string>& paths) {
  std::vector<nlohmann::json> records;
  for (const std::string& path : paths) {
    for (nlohmann::json& record : lab::read_records(path)) {
      if (!record.contains("kind")) records.push_back(std::move(record));
    }
  }
  if (records.empty()) {
    throw InvalidArgument("records", fmt::format("there is no result in {}; --json of bench, "
                                                 "compare or verify writes them",
                                                 fmt::join(paths, ", ")));
  }
  return records;
}

int report(const ReportOptions& o) {
  check_output(o);
  const std::vector<nlohmann::json> records = read_all(o.records);
  const std::string page = lab::render_page(records, o.page);
  write_output("-o", o.output, page, o.force);
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
