#include "cli/top_keys.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace remote::cli {

TopKey take_key(std::string& typed) {
  constexpr std::array<std::pair<std::string_view, TopKey>, 8> sequences{{{"\033[A", TopKey::up},
                                                                          {"\033OA", TopKey::up},
                                                                          {"\033[B", TopKey::down},
                                                                          {"\033OB", TopKey::down},
                                                                          {"\033[5~", TopKey::page_up},
                                                                          {"\033[6~", TopKey::page_down},
                                                                          {"\033[", TopKey::other},
                                                                          {"\033O", TopKey::other}}};
  for (const auto& [sequence, key] : sequences) {
    if (typed.starts_with(sequence)) {
      typed.erase(0, sequence.size());
      if (key == TopKey::other) {  // the rest of a key sequence that is not used
        typed.erase(0, typed.find_first_not_of("0123456789;") + 1);
      }
      return key;
    }
  }
  const char first = typed.front();
  typed.erase(0, 1);
  switch (first) {
    case 'k':
      return TopKey::up;
    case 'j':
      return TopKey::down;
    case 'f':
      return TopKey::follow;
    case '\r':
    case '\n':
      return TopKey::enter;
    case 's':
      return TopKey::stacks;
    case 'x':
    case 'K':
      return TopKey::kill;
    case 'X':
      return TopKey::kill_launch;
    case 'y':
    case 'Y':
      return TopKey::yes;
    case 'n':
    case 'N':
      return TopKey::no;
    case '?':
    case 'h':
      return TopKey::help;
    case 'q':
    case '\003':
    case '\004':
    case '\033':
      return TopKey::leave;
    case '\032':
      return TopKey::suspend;
    default:
      return TopKey::other;
  }
}

const std::vector<std::string>& top_help() {
  static const std::vector<std::string> text{
      "up, down (or k, j)   choose a job",
      "page up, page down   see what does not fit",
      "f or Enter           follow the job's output",
      "s                    Python stacks of its ranks",
      "x                    stop the job, or only this rank of a launch; it asks first",
      "X                    stop all ranks of its launch; it asks first",
      "q, Esc or Ctrl-C     back, and out",
      "Ctrl-Z               stop remote for a while",
      "",
      "A GPU's last column shows the users of its memory: a job of this project by",
      "its key, another process with its owner, its name and its number."};
  return text;
}

}  // namespace remote::cli
