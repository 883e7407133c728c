#include "cuda/warnings.h"

#include <algorithm>
#include <mutex>

namespace strobe::cuda {
namespace {

std::mutex mutex;
std::vector<std::string> sentences;

}  // namespace

void warn(const std::string& sentence) {
  const std::scoped_lock lock(mutex);
  if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
    sentences.push_back(sentence);
  }
}

std::vector<std::string> warnings() {
  const std::scoped_lock lock(mutex);
  return sentences;
}

}  // namespace strobe::cuda
