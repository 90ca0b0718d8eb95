#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "promise.hpp"
#include "servers/provision_answers.hpp"

// What setup and the packages' installation print, in pieces of any size.

namespace {

using namespace remote;
using namespace remote::fuzz;

std::string read_in_pieces(std::string_view text, std::size_t piece) {
  std::string all;
  servers::ProvisionAnswers answers([&](const std::string& line) {
    require(line.find('\n') == std::string::npos && line.size() <= 4096,
            "a detail is one line, and no long one");
    all += "detail " + line + "\n";
  });
  while (!text.empty()) {
    answers.add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  require(answers.notes.size() <= 1000, "notes are bounded");
  for (const std::string& note : answers.notes) {
    all += "note " + note + "\n";
  }
  return all + "fail " + answers.failure + "\nhint " + answers.hint + "\nhave " +
         (answers.have("setup") ? "setup" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 0) {
    require(read_in_pieces(text, size) == read_in_pieces(text, 1 + data[0] % 7U), "the pieces do not matter");
  }
  return 0;
}
