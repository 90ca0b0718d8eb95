#include "servers/deep.hpp"

#include <utility>
#include <variant>

#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "base/strings.hpp"
#include "server/archive.hpp"
#include "servers/marked_lines.hpp"
#include "wire/deep.hpp"

namespace remote::servers {
namespace {

// No more than this are listed; torch maps a few dozen.
constexpr std::size_t most_libraries = 2000;

// Throws wire::Malformed.
class ImportReader {
 public:
  void take(const wire::ImportMessage& message) {
    require(!has_ended_, "message", "follows the end");
    std::visit([this](const auto& each) { take(each); }, message);
  }
  bool has_ended() const { return has_ended_; }
  ImportFacts& facts() { return facts_; }

 private:
  static void require(bool fits, const char* place, const char* problem) {
    if (!fits) {
      throw wire::Malformed(place, problem);
    }
  }
  static const std::string& require_text(const char* place, const std::string& text) {
    require(!text.empty(), place, "is empty");
    return text;
  }

  void take(const wire::ImportedTorch& torch) {
    facts_.torch = require_text("version", torch.version);
    facts_.took = torch.took;
  }
  void take(const wire::ImportFailed& failed) { facts_.error = visible_line(failed.reason, 300); }
  void take(const wire::ImportedDevices& devices) {
    facts_.devices = devices.count;
    facts_.cuda = require_text("cuda", devices.cuda);
  }
  void take(const wire::ImportedNccl& nccl) { facts_.nccl = require_text("version", nccl.version); }
  void take(const wire::ImportTrouble& trouble) { facts_.trouble = visible_line(trouble.reason, 300); }
  void take(const wire::ImportedLibrary& from) {
    require(facts_.libraries.size() < most_libraries, "library", "is one too many");
    LibraryFacts library;
    library.digest = require_text("digest", from.digest);
    library.size = from.size;
    library.path = visible_line(from.path, 1000);
    library.name = library.path.substr(library.path.rfind('/') + 1);
    require(!library.name.empty(), "path", "does not end with a name");
    facts_.libraries.push_back(std::move(library));
  }
  void take(const wire::ImportEnd&) { has_ended_ = true; }

  ImportFacts facts_;
  bool has_ended_ = false;
};

}  // namespace

ImportFacts read_import(std::string_view output) {
  ImportReader reader;
  MarkedLines lines(wire::deep_mark,
                    [&](std::string_view json) { reader.take(parse_message<wire::ImportMessage>(json)); });
  lines.add(output);
  lines.check();
  if (lines.count() == 0 && !lines.is_cut()) {
    throw login_shell_ended({}, output);
  }
  if (!reader.has_ended() || lines.is_cut()) {
    throw Error("the server's answer is cut short", "its closing line is missing")
        .mended_by(Remedy::tell_more);
  }
  return std::move(reader.facts());
}

std::string deep_command() {
  return "if command -v timeout >/dev/null; then set -- timeout 300; else set --; fi; "
         "\"$@\" python3 -c \"$REMOTE_DEEP\"";
}

std::string deep_program() {
  return std::string(server::python_text("deep.py"));
}

}  // namespace remote::servers
