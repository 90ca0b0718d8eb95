#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/events.hpp>

#include "config/config.hpp"

namespace remote::servers {

// A symbolic link that would make rsync send what is not the project's. rsync sends what links lead to.
struct OutsideLink {
  std::string name;              // in the project, as rsync sees it: other links in the path are followed
  std::filesystem::path target;  // real
  LinkLeftOut::Why why = LinkLeftOut::Why::not_allowed;
};

// The links among what the project's patterns select that lead out of the project, into its .remote or to
// nothing, and its folders with a Python environment. What a
// link leads to is searched where `allowed` says that it is sent; keys that lie there (~/.ssh, …) are among
// the result, too, and so are links to a folder that they are in themselves: rsync would follow them for
// ever. A project without any of this costs one walk over its folders. Throws Error, also where the links
// lead to more paths than can be walked.
std::vector<OutsideLink> outside_links(const config::Config& config,
                                       const std::function<bool(const OutsideLink&)>& allowed,
                                       const Cancel& cancel);

}  // namespace remote::servers
