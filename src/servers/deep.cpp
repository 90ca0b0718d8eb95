#include "servers/deep.hpp"

#include "server/program.hpp"
#include "servers/action.hpp"

namespace remote::servers {
namespace {

// More are not listed: torch maps some dozens.
constexpr std::size_t most_libraries = 2000;

}  // namespace

void DeepAnswer::take(AnswerLine& line) {
  if (line.kind() != "deep") {
    line.refuse_kind();
  }
  const std::string_view key = line.word();
  if (key == "failed") {
    facts.error = visible_line(line.rest(), 300);
    return;
  }
  if (key == "trouble") {
    facts.trouble = visible_line(line.rest(), 300);
    return;
  }
  if (key == "torch") {
    facts.torch = line.name("._+-");
    facts.took = std::chrono::milliseconds(line.number(0, 1 << 30));
  } else if (key == "devices") {
    facts.devices = line.number(0, 1024);
    facts.cuda = line.name("._+-");
  } else if (key == "nccl") {
    facts.nccl = line.name("._+-");
  } else if (key == "library") {
    LibraryFacts library;
    library.digest = line.name("");
    library.size = line.number<std::uint64_t>(0);
    library.path = visible_line(line.rest(), 1000);
    library.name = library.path.substr(library.path.rfind('/') + 1);
    if (library.name.empty() || facts.libraries.size() >= most_libraries) {
      line.refuse("a library is wrong");
    }
    facts.libraries.push_back(std::move(library));
  } else {
    line.refuse("an unknown word");
  }
  line.end();
}

std::string deep_command() {
  return "if command -v timeout >/dev/null; then set -- timeout 300; else set --; fi; "
         "\"$@\" python3 -c \"$REMOTE_DEEP\"";
}

std::string deep_program() {
  return std::string(server::python_text("deep.py"));
}

}  // namespace remote::servers
