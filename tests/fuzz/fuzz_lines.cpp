#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/login_shell.hpp"
#include "project/check/burn.hpp"
#include "promise.hpp"
#include "servers/deep.hpp"
#include "servers/marked_lines.hpp"

// Messages of `check --burn` and `check --deep` between lines of other programs, in pieces of any size.

namespace {

using namespace remote;
using namespace remote::fuzz;

std::string read_in_pieces(std::string_view text, std::size_t piece) {
  std::string messages;
  std::string others;
  project::BurnAnswer answer{4};
  servers::MarkedLines lines(wire::burn_mark, [&](std::string_view json) {
    require(json.find('\n') == std::string_view::npos && json.size() < LineCutter::longest,
            "a message is one short line");
    messages.append(json).append("\n");
    answer.take(servers::parse_message<wire::BurnMessage>(json));
  });
  LineCutter other_lines;
  Greeting greeting;
  const auto begins = [](std::string_view line) { return line.starts_with(wire::burn_mark); };
  std::string behind;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    lines.add(part);
    other_lines.add(part, [&](std::string_view line) {
      require(line.find_first_of("\r\n") == std::string::npos && line.size() <= LineCutter::longest,
              "a line is one short line");
      others.append(line).append("\n");
    });
    behind += greeting.strip(part, begins);
    text.remove_prefix(part.size());
  }
  guarded([&] { lines.check(); });
  require(answer.links.size() <= 2, "the links are bounded");
  return messages + others + (greeting.over() ? "behind " : "greeting ") + greeting.text() + behind;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 0) {
    require(read_in_pieces(text, size) == read_in_pieces(text, 1 + data[0] % 7U), "the pieces do not matter");
  }
  guarded([&] { servers::read_import(text); });
  return 0;
}
