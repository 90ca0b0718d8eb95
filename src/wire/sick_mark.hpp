#pragma once

#include "wire/jobs.hpp"

namespace remote::wire {

// Removes the mark of a sick server, which launches exclude (ServerFacts::sick).
struct ClearSickMarkRequest {
  static constexpr std::string_view kind = "clear_sick_mark";

  JobsPlace place;

  static constexpr auto fields() { return field_list(field("place", &ClearSickMarkRequest::place)); }
};

// The mark was removed, or there was none.
struct ClearSickMarkReply {
  static constexpr std::string_view kind = "clear_sick_mark";

  static constexpr auto fields() { return field_list(); }
};

}  // namespace remote::wire
