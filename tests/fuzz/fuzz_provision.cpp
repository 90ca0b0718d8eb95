#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/login_shell.hpp"
#include "promise.hpp"
#include "servers/answer.hpp"

// What setup and the packages' installation print, in pieces of any size.

namespace {

using namespace remote;
using namespace remote::fuzz;

std::string read_in_pieces(std::string_view text, std::size_t piece) {
  std::string all;
  servers::AnswerReader reader(
      [&](servers::AnswerLine& line) {
        require(line.kind().find_first_of(" \n") == std::string_view::npos, "a kind is one word");
        all.append(line.kind()).append(" ").append(line.rest()).append("\n");
      },
      [&](std::string_view line) {
        require(line.find_first_of("\r\n") == std::string::npos && line.size() <= LineCutter::longest,
                "a detail is one line, and no long one");
        all.append("detail ").append(line).append("\n");
      });
  Greeting greeting;
  const auto begins = [](std::string_view line) { return line.starts_with(servers::answer_mark); };
  std::string behind;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    reader.add(part);
    behind += greeting.strip(part, begins);
    text.remove_prefix(part.size());
  }
  for (const bool closing_line : {false, true}) {
    guarded([&] { closing_line ? reader.finish_with_closing_line("exit 1") : reader.finish(); });
  }
  return all + (greeting.over() ? "behind " : "greeting ") + greeting.text() + behind;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 0) {
    require(read_in_pieces(text, size) == read_in_pieces(text, 1 + data[0] % 7U), "the pieces do not matter");
  }
  return 0;
}
