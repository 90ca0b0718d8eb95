#pragma once

#include <optional>

#include "agent/job/record.hpp"
#include "wire/uninstall.hpp"

namespace remote::agent {

// Why folders of the project's jobs must be kept.
struct KeepReasons {
  std::optional<wire::LeftReason> programs{};
  std::optional<wire::LeftReason> trees{};
};

// Removes every program of remote that belongs to this user, then searches again and reports leftovers. A dry
// run only lists the programs. Links are not followed.
wire::UninstallReply remove_programs(const Host& host, const wire::UninstallRequest& request,
                                     const KeepReasons& reasons);

}  // namespace remote::agent
