#include "project/code_check.hpp"

#include <algorithm>
#include <map>

namespace remote::project {

CodeCheck::CodeCheck(const Core& core)
    : here_(std::async(std::launch::async, [&core] { return files_here(core.config, core.cancel()); })) {}

std::vector<CodeChanged> CodeCheck::tell(Core& core, const std::vector<config::Server>& servers,
                                         const std::vector<ssh::LoginFacts>& logins) {
  using Mark = servers::SentState::Mark;
  std::vector<CodeChanged> all;
  try {
    const servers::ProjectState here = here_.get();
    std::map<Mark, std::vector<std::string>> changed;  // servers that got the same share one comparison
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const Mark mark = servers::SentState(core.config, servers[i], logins[i]).mark();
      auto found = changed.find(mark);
      if (found == changed.end()) {
        found = changed.emplace(mark, servers::changed_since(core.config, mark, here)).first;
      }
      const auto same = std::ranges::find_if(all, [&](const CodeChanged& event) {
        return event.names == found->second && event.never_sent == mark.never();
      });
      if (same != all.end()) {
        same->servers.push_back(servers[i].name);
      } else if (!found->second.empty()) {
        all.push_back({{servers[i].name}, found->second, mark.never()});
      }
    }
    for (const CodeChanged& event : all) {
      core.tell(event);
    }
  } catch (const Error& error) {
    core.tell(StoreProblem{"it is not known whether the code was changed here: " + error.message()});
  }
  return all;
}

}  // namespace remote::project
