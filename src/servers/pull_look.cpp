#include "servers/pull_look.hpp"

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "servers/action.hpp"

namespace remote::servers {
namespace {

struct LookAnswer {
  std::size_t wanted;
  std::vector<PathKind> kinds = {};

  void take(AnswerLine& line) {
    if (line.kind() != "pull" || kinds.size() == wanted) {
      line.refuse_kind();
    }
    kinds.push_back(line.choice<PathKind>(
        line.word(), {{"missing", PathKind::missing}, {"there", PathKind::there}, {"link", PathKind::link}},
        "a kind is wrong"));
    line.end();
  }
  void check() const {
    if (kinds.size() != wanted) {
      throw Error("cannot look at the files", "the server's answer does not name all of them");
    }
  }
};

}  // namespace

std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel) {
  Action<LookAnswer> action;
  action.what = "look at " + counted(paths.size(), "path");
  action.script.add("pull_look.sh").append("pull_look");
  for (const std::string& path : paths) {
    action.script.append(" " + remote_path_word(path));
  }
  action.timeout = std::chrono::seconds(30);
  return run_action(connection, action, cancel, LookAnswer{paths.size()}).kinds;
}

}  // namespace remote::servers
