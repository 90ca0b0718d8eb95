#include "servers/disk_hints.hpp"

#include <algorithm>
#include <initializer_list>

namespace remote::servers {

std::string disk_hint(std::string_view message) {
  const auto says = [message](std::initializer_list<std::string_view> texts) {
    return std::ranges::any_of(texts,
                               [&](std::string_view text) { return message.find(text) != message.npos; });
  };
  if (says({"No space left on device"})) {
    return "free some space on the server's disk, then run the command again";
  }
  if (says({"Disk quota exceeded"})) {
    return "the quota of the login there is used up, which `quota -s` shows: remove files, or choose another "
           "remote_path";
  }
  // EPERM has many other causes.
  if (says({"Operation not supported", "Function not implemented"}) ||
      (says({"Operation not permitted"}) && says({"set permissions", "symlink", "chmod", "' -> '"}))) {
    return "the file system of the project's folder there lacks modes, links or locks: choose another "
           "remote_path";
  }
  return {};
}

}  // namespace remote::servers
