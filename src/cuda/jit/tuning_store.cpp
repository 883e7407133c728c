#include "cuda/jit/tuning_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <system_error>

#include "core/text.h"
#include "core/user_folder.h"
#include "cuda/jit/architecture.h"
#include "cuda/jit/build.h"
#include "cuda/jit/hash.h"
#include "cuda/jit/kept_files.h"
#include "cuda/jit/known_compiler.h"
#include "strobe/error.h"

namespace strobe::cuda::jit {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVariantSuffix = ".variant";
constexpr std::string_view kFirstLine = "strobe tuned 1";  // the number is the version
constexpr std::string_view kLastLine = "end";              // without it the file is torn

struct KeyLine {
  const char* name;
  std::string TuningKey::*value;
};

constexpr std::array kKeyLines = {
    KeyLine{"gpu", &TuningKey::gpu},           KeyLine{"architecture", &TuningKey::architecture},
    KeyLine{"compiler", &TuningKey::compiler}, KeyLine{"kernel", &TuningKey::kernel},
    KeyLine{"sources", &TuningKey::sources},   KeyLine{"options", &TuningKey::options},
    KeyLine{"problem", &TuningKey::problem}};

std::string text_of(const TuningKey& key) {
  std::string text;
  for (const KeyLine& line : kKeyLines) text += concat(line.name, " ", key.*line.value, "\n");
  return text;
}

std::string text_of(const TuningKey& key, const TunedVariant& tuned) {
  return concat(kFirstLine, "\n", text_of(key), "variant ", tuned.variant, "\nusual ", tuned.usual,
                "\nms ", tuned.ms, "\nusual_ms ", tuned.usual_ms, "\n", kLastLine, "\n");
}

/// Takes a text apart line by line, and notices when it is not as expected.
class Lines {
 public:
  explicit Lines(const std::string& text) : stream_(text) {}

  void expect(std::string_view wanted) {
    const std::string line = next();
    good_ = good_ && line == wanted;
  }

  /// What follows the name.
  std::string value(std::string_view name) {
    std::string line = next();
    good_ = good_ && line.starts_with(concat(name, " "));
    return good_ ? line.substr(name.size() + 1) : "";
  }

  double number(std::string_view name) {
    const std::string digits = value(name);
    const char* const end = digits.data() + digits.size();
    double number = 0;
    const auto read = std::from_chars(digits.data(), end, number);
    good_ = good_ && read.ec == std::errc{} && read.ptr == end;
    return number;
  }

  bool good() const { return good_; }

 private:
  std::string next() {
    std::string line;
    good_ = good_ && std::getline(stream_, line) && !stream_.eof();  // its end is not missing
    return line;
  }

  std::istringstream stream_;
  bool good_ = true;
};

std::optional<TuningStore::Entry> read_entry(const fs::path& path) {
  TuningStore::Entry entry{.path = path};
  Lines lines(read_kept_file(path));
  lines.expect(kFirstLine);
  for (const KeyLine& line : kKeyLines) entry.key.*line.value = lines.value(line.name);
  entry.tuned.variant = lines.value("variant");
  entry.tuned.usual = lines.value("usual");
  entry.tuned.ms = lines.number("ms");
  entry.tuned.usual_ms = lines.number("usual_ms");
  lines.expect(kLastLine);
  if (!lines.good()) return std::nullopt;
  entry.bytes = bytes_of(path);
  entry.age = age_of(path);
  return entry;
}

}  // namespace

fs::path TuningStore::path_of(const TuningKey& key) const {
  return folder_ / concat(hash_text(hash_of(text_of(key))), kVariantSuffix);
}

std::string TuningStore::keep(const TuningKey& key, const TunedVariant& tuned) const {
  const std::string trouble = write_beside_and_rename(path_of(key), text_of(key, tuned));
  if (trouble.empty()) return "";
  return concat("the variant ", tuned.variant, " is not kept: ", folder_.string(), ": ", trouble,
                "; STROBE_CACHE_DIR names another folder");
}

void TuningStore::forget(const TuningKey& key) const {
  std::error_code not_there;
  fs::remove(path_of(key), not_there);
}

std::vector<TuningStore::Entry> TuningStore::entries() const {
  std::vector<Entry> all;
  for (const fs::path& path : kept_files(folder_, kVariantSuffix)) {
    auto entry = read_entry(path);
    if (entry && path_of(entry->key) == path) all.push_back(std::move(*entry));
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.age < b.age; });
  return all;
}

std::int64_t TuningStore::clear() const {
  return remove_kept_files(folder_, kVariantSuffix);
}

TuningStore user_tuning() {
  return TuningStore(cache_folder() / "tuned");
}

namespace {

/// The user's store as it was when it was first needed, and what this process has added.
class Winners {
 public:
  Winners() {
    for (const TuningStore::Entry& entry : user_tuning().entries())
      variants_[text_of(entry.key)] = entry.tuned.variant;
  }

  bool empty() const {
    const std::scoped_lock lock(mutex_);
    return variants_.empty();
  }

  std::optional<std::string> find(const TuningKey& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = variants_.find(text_of(key));
    return found == variants_.end() ? std::nullopt : std::optional(found->second);
  }

  void set(const TuningKey& key, const std::string& variant) {
    const std::scoped_lock lock(mutex_);
    variants_[text_of(key)] = variant;
  }

  void erase(const TuningKey& key) {
    const std::scoped_lock lock(mutex_);
    variants_.erase(text_of(key));
  }

 private:
  mutable std::mutex mutex_{};
  std::map<std::string, std::string> variants_{};  ///< by the text of the key
};

Winners& winners() {
  static Winners once;
  return once;
}

/// Hashed once in a process: that takes longer than all the rest of a key.
std::string known_sources(std::string_view path) {
  static std::mutex mutex;
  static std::map<std::string, std::string, std::less<>> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(path);
  if (found != known.end()) return found->second;
  return known.emplace(path, sources_text(path)).first->second;
}

/// The seed of dropout changes nothing that can be tuned.
TuningKey key_of(const Tunable& what) {
  Problem problem = what.problem;
  problem.dropout_seed = 0;
  return {.gpu = what.device.name(),
          .architecture = Architecture::of(what.device).text(),
          .compiler = concat("NVRTC ", compiler_version()),
          .kernel = std::string(what.kernel),
          .sources = known_sources(what.source),
          .options = std::string(what.options),
          .problem = problem.text()};
}

}  // namespace

std::optional<std::string> tuned_variant(const Tunable& what) {
  if (winners().empty()) return std::nullopt;
  return winners().find(key_of(what));
}

void keep_tuned_variant(const Tunable& what, const std::optional<TunedVariant>& tuned) {
  const TuningKey key = key_of(what);
  if (!tuned) {
    user_tuning().forget(key);
    winners().erase(key);
    return;
  }
  if (const std::string trouble = user_tuning().keep(key, *tuned); !trouble.empty())
    throw Error(trouble);
  winners().set(key, tuned->variant);
}

}  // namespace strobe::cuda::jit
