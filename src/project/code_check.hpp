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

// Checks whether the servers are about to run the code that is here. Each server compares the sizes and times
// of the project's files with those here; if these differ, contents are compared.
class CodeCheck {
 public:
  // Starts to read the project on a separate thread, so that connections can be made at the same time.
  // `prepared`: if tell() queries the servers, it also reports the results of this check, and throws Error if
  // nothing can start.
  explicit CodeCheck(const Core& core, std::optional<PreparedCheck> prepared = {});

  // Adds the comparison to a facts request to a server. Thread-safe.
  void add_to(servers::FactsRequest& request, const config::Server& server) const;

  struct Result {
    std::vector<CodeChanged> changed;  // the reported changes
    LaunchCode servers;  // which servers have the current files; empty: the project has no files to send
  };
  // Reports CodeChanged, once for all servers with the same answer. `logins`: this machine's login on each
  // server. `answers`: the answers to requests from add_to(), by server; empty: queries the servers now.
  // Throws Interrupted.
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

// Counts the files that were sent to these servers, are gone here, and are still on one of them, without
// those of git. `logins`: this machine's login on each server. Throws Interrupted.
std::size_t count_files_gone_here(Core& core, const std::vector<config::Server>& servers,
                                  const std::vector<ssh::LoginFacts>& logins);

// Whether the project was sent to the server and none of its files are left there.
bool is_gone_from(const std::string& server, const std::vector<CodeChanged>& changed);

// This folder in its current state, as the sender of the project.
wire::ProjectSource own_source(const config::Config& config);

// Waits for git, then reports LaunchCode unless it lists no servers.
void tell_code(Core& core, GitState& git, LaunchCode code);

}  // namespace remote::project
