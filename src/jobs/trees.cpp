#include "jobs/trees.hpp"

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "jobs/protocol.hpp"

namespace remote::jobs {

void TreeAnswer::take(servers::AnswerLine& line) {
  constexpr std::size_t most_names = 100;
  if (line.kind() != "tree") {
    line.refuse_kind();
  }
  const std::string_view how = line.word();
  if (how == "ready") {
    ready = true;
  } else if (how == "unknown") {
    unknown = true;
  } else if (how == "more") {
    more = line.number<int>(0);
  } else if (how == "differs" && line.more() && differing.size() < most_names) {
    differing.push_back(visible_line(line.rest(), 500));
  } else if (how == "fail" && line.more()) {
    failure = visible_line(line.rest(), 500);
  } else {
    line.refuse("an unknown word");
  }
  line.end();
}

void TreeAnswer::check() const {
  if (!ready && !unknown && differing.empty() && failure.empty()) {
    throw Error("the server's answer is not understood", "nothing about the tree in it")
        .mended_by(Remedy::tell_more);
  }
}

servers::Action<TreeAnswer> tree_action(const RemoteFolder& folder, const std::string& digest,
                                        const std::string& list, const std::string& activate) {
  servers::Action<TreeAnswer> action;
  action.what = "tree of a frozen launch";
  action.script = job_script(folder, "actions/tree.sh");
  action.script.set("activate", activate).call("tree_make", {digest});
  action.input = list.empty() ? "\n" : list;
  action.timeout = std::chrono::minutes(10);  // where a file system knows no links, it is a copy
  return action;
}

}  // namespace remote::jobs
