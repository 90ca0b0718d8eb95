#include "jobs/trees.hpp"

#include <chrono>

#include <remote/error.hpp>

#include "jobs/from_wire.hpp"

namespace remote::jobs {

wire::MakeTreeReply make_tree(const AnyAgent& agent, const RemoteFolder& folder, const std::string& digest,
                              const std::string& list) {
  using enum wire::TreeOutcome;
  if (list.size() > wire::max_request_data) {
    throw Error("cannot freeze the code", "the project has too many files",
                "exclude some of them in .remote/exclude.txt");
  }
  servers::AgentQuestion question;
  question.what = "tree of a frozen launch";
  question.request = wire::MakeTreeRequest{to_place(folder), digest};
  question.data = list;
  question.timeout = std::chrono::minutes(10);  // it is copied if the file system does not support links
  auto reply = servers::take_reply<wire::MakeTreeReply>(agent.ask(question));
  if ((reply.outcome == differs) == reply.differing.empty() ||
      (reply.outcome == failed) == reply.reason.empty()) {
    throw Error("the server's answer is not understood", "the state of the tree is contradictory")
        .mended_by(Remedy::tell_more);
  }
  return reply;
}

}  // namespace remote::jobs
