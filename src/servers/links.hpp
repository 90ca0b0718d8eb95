#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/events.hpp>

#include "config/config.hpp"

namespace remote::servers {

// A symbolic link that would make rsync send files from outside the project, because rsync sends the targets
// of links.
struct OutsideLink {
  std::string name;  // its name in the project as rsync sees it: other links in the path are followed
  std::filesystem::path target;  // with all links resolved
  LinkLeftOut::Why why = LinkLeftOut::Why::not_allowed;
};

// Finds, among the files that the project's patterns select, links that point outside the project, into its
// .remote or to missing files, and folders with a Python environment. If `allowed` permits a link, its target
// is searched too. The result also includes keys found there (~/.ssh, …), and links to a folder that contains
// the link itself, which rsync would follow forever. A project without any of these costs one walk over its
// folders. Throws Error, also if the links produce too many paths.
std::vector<OutsideLink> outside_links(const config::Config& config,
                                       const std::function<bool(const OutsideLink&)>& allowed,
                                       const Cancel& cancel);

}  // namespace remote::servers
