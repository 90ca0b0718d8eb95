#pragma once

#include <cstdint>
#include <string>

#include "wire/fields.hpp"

namespace remote::wire {

constexpr std::size_t max_running =
    10'000;  // the maximum number of a project's jobs on a server that a reply lists

// The last sender of a project, or one whose transfer runs or was cut off: `source.json` in the folder of
// remote's scripts on the server.
struct ProjectSource {
  std::string folder_id;  // of the project's folder on the client's machine (config/folder_id.hpp)
  std::string user;       // "ada@laptop"
  std::string folder;     // that folder
  std::int64_t at = 0;    // seconds since the epoch

  static constexpr auto fields() {
    using S = ProjectSource;
    return field_list(field("folder_id", &S::folder_id, an_id()), field("user", &S::user, a_line()),
                      field("folder", &S::folder, a_line(4096)),
                      field("at", &S::at, in_range(0, 253'402'300'800)));
  }
};

}  // namespace remote::wire
