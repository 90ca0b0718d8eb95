#pragma once

#include <string>
#include <vector>

// The keys of `remote top`.

namespace remote::cli {

enum class TopKey {
  up,
  down,
  page_up,
  page_down,
  follow,
  enter,
  stacks,
  kill,
  kill_launch,
  yes,
  no,
  help,
  leave,
  suspend,
  other
};

// Removes the first key from the input, which must not be empty. A terminal sends the arrow keys as "\033[A"
// or "\033OA".
TopKey take_key(std::string& typed);
// The help for the keys, as lines.
const std::vector<std::string>& top_help();

}  // namespace remote::cli
