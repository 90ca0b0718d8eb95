#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "promise.hpp"
#include "servers/answers.hpp"

// What setup and the packages' installation print, in pieces of any size.

namespace {

using namespace remote;
using namespace remote::fuzz;

std::string read_in_pieces(std::string_view text, std::size_t piece) {
  std::string all;
  servers::Answers answers([&](std::string_view line) {
    require(line.find('\n') == std::string::npos && line.size() <= 16384,
            "a detail is one line, and no long one");
    all += "detail " + std::string(line) + "\n";
  });
  while (!text.empty()) {
    answers.add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  for (const char* word : {"note", "have", "fail", "hint", "changed"}) {
    for (const std::string& value : answers.all(word)) {
      all.append(word).append(" ").append(value).append("\n");
    }
    require(answers.last(word).empty() || answers.has(word, answers.last(word)),
            "the last answer is one of them");
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 0) {
    require(read_in_pieces(text, size) == read_in_pieces(text, 1 + data[0] % 7U), "the pieces do not matter");
  }
  return 0;
}
