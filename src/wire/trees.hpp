#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "wire/jobs.hpp"

// The trees that frozen launches run in (docs/frozen.md).

namespace remote::wire {

// Creates a tree from the files in the project's folder, or completes an existing one. The list of its files
// follows as data: "SIZE NANOSECONDS NAME" for each file, terminated by NUL. Without data, the list kept on
// the server is used.
struct MakeTreeRequest {
  static constexpr std::string_view kind = "make_tree";

  JobsPlace place;
  std::string digest;  // SHA-256 of the list, in hexadecimal

  static constexpr auto fields() {
    using R = MakeTreeRequest;
    return field_list(field("place", &R::place), field("digest", &R::digest, a_word("", 64)));
  }
};

enum class TreeOutcome {
  ready,
  unknown,  // the list of its files or the project's folder is missing
  differs,  // files of the project differ from the list
  failed,   // see `reason`
};

struct MakeTreeReply {
  static constexpr std::string_view kind = "make_tree";

  TreeOutcome outcome = TreeOutcome::ready;
  std::vector<std::string> differing{};  // names of the first differing files
  int more = 0;                          // number of further differing files
  std::string reason{};

  static constexpr auto fields() {
    using R = MakeTreeReply;
    return field_list(field("outcome", &R::outcome), field("differing", &R::differing, a_line(500)),
                      field("more", &R::more, in_range(0, 1 << 30)),
                      field("reason", &R::reason, a_line(1000)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::TreeOutcome> = {
    std::string_view("ready"), std::string_view("unknown"), std::string_view("differs"),
    std::string_view("failed")};
