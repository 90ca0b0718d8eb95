#pragma once

#include <future>
#include <vector>

#include "project/core.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {

// Whether what is about to start runs the code that is here. No server is asked: what is here is compared
// with what was here when it was last sent.
class CodeCheck {
 public:
  // Begins to look at the project, on a thread of its own, so that connections can be made meanwhile.
  explicit CodeCheck(const Core& core);

  // Tells CodeChanged, once for all servers with the same answer, and returns what it told. `logins`: how
  // this machine has logged in to each. Throws Interrupted.
  std::vector<CodeChanged> tell(Core& core, const std::vector<config::Server>& servers,
                                const std::vector<ssh::LoginFacts>& logins);

 private:
  std::future<servers::ProjectState> here_;
};

}  // namespace remote::project
