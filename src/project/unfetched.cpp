#include "project/unfetched.hpp"

#include <set>

#include "project/submodules.hpp"
#include "servers/project_tree.hpp"

namespace remote::project {

void tell_unfetched(Core& core, const config::Config& config, const servers::ProjectState& state) {
  UnfetchedFiles unfetched{state.pointers(), {}};
  std::set<std::string> folders;
  for (const std::string& path : find_empty_submodules(config.project)) {
    folders.insert(path + "/");
  }
  if (!folders.empty()) {
    for (const std::string& folder : servers::select_among(config, folders, core.cancel()).selected) {
      unfetched.submodules.push_back(folder.substr(0, folder.size() - 1));
    }
  }
  if (!unfetched.pointers.empty() || !unfetched.submodules.empty()) {
    core.tell(unfetched);
  }
}

}  // namespace remote::project
