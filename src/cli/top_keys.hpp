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

// Takes the first key from what was typed, which is not empty. A terminal sends the arrows as "\033[A" or
// "\033OA".
TopKey take_key(std::string& typed);
// What they do, line by line.
const std::vector<std::string>& top_help();

}  // namespace remote::cli
