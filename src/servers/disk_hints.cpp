#include "servers/disk_hints.hpp"

#include "base/has_any.hpp"

namespace remote::servers {
namespace {

constexpr const char* lacks_something =
    "the file system of the project's folder there lacks modes, links or locks: choose another remote_path";

}  // namespace

std::string output_disk_hint(std::string_view output) {
  if (has_any(output, {"No space left on device"})) {
    return "free some space on the server's disk, then run the command again";
  }
  if (has_any(output, {"Disk quota exceeded"})) {
    return "the quota of the login there is used up, which `quota -s` shows: remove files, or choose another "
           "remote_path";
  }
  // Each of these errors has many other causes.
  return has_any(output,
                 {"Operation not permitted", "Operation not supported", "Function not implemented"}) &&
                 has_any(output, {"set permissions", "symlink", "chmod", "' -> '"})
             ? lacks_something
             : "";
}

std::string disk_hint(std::string_view reason) {
  const std::string hint = output_disk_hint(reason);
  // The agent only tries folders that the user has permission to write to.
  const bool was_tried = has_any(reason, {"cannot write in ", "cannot keep the programs in "});
  return hint.empty() && (has_any(reason, {"Operation not supported", "Function not implemented"}) ||
                          (was_tried && has_any(reason, {"Operation not permitted"})))
             ? lacks_something
             : hint;
}

}  // namespace remote::servers
