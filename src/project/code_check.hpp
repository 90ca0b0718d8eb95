#pragma once

#include <future>
#include <optional>
#include <vector>

#include "project/core.hpp"
#include "project/git_state.hpp"
#include "project/prepared_check.hpp"
#include "servers/facts.hpp"
#include "servers/sent_state.hpp"
#include "wire/source.hpp"

namespace remote::project {

// Whether what is about to start runs the code that is here. Each server compares the sizes and times of the
// project's files with those here; where they differ, contents are compared.
class CodeCheck {
 public:
  // Begins to look at the project, on a thread of its own, so that connections can be made meanwhile.
  // `prepared`: if tell() asks the servers, it also reports what it finds by this, and throws Error if
  // nothing can start.
  explicit CodeCheck(const Core& core, std::optional<PreparedCheck> prepared = {});

  // Lets a server compare its files when it is asked for facts anyway. Any thread.
  void add_to(servers::FactsRequest& request, const config::Server& server) const;

  struct Result {
    std::vector<CodeChanged> changed;  // what was told
    LaunchCode servers;                // which servers have what is here; none: there is nothing to send
  };
  // Tells CodeChanged, once for all servers with the same answer. `logins`: how this machine has logged in to
  // each. `answers`: to what add_to() has asked, by server; none: the servers are asked now. Throws
  // Interrupted.
  Result tell(Core& core, const std::vector<config::Server>& servers,
              const std::vector<ssh::LoginFacts>& logins,
              const std::vector<servers::FactsAnswer>& answers = {});

 private:
  Result compare(Core& core, const std::vector<config::Server>& servers,
                 const std::vector<ssh::LoginFacts>& logins,
                 const std::vector<servers::FactsAnswer>& answers) const;
  std::vector<servers::FactsAnswer> ask_all(Core& core, const std::vector<config::Server>& servers) const;
  void report_prepared(Core& core, const std::vector<config::Server>& servers,
                       const std::vector<servers::FactsAnswer>& answers, const Result& result) const;

  const config::Config& config_;
  std::optional<PreparedCheck> prepared_;
  std::shared_future<servers::ProjectState> here_;
};

// Whether the project was sent to the server, and nothing of it is left there.
bool is_gone_from(const std::string& server, const std::vector<CodeChanged>& changed);

// This folder as the sender of the project, now.
wire::ProjectSource own_source(const config::Config& config);

// Waits for git, and tells LaunchCode, unless it has no server.
void tell_code(Core& core, GitState& git, LaunchCode code);

}  // namespace remote::project
