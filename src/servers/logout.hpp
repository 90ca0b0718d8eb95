#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <remote/facts.hpp>

#include "servers/answer.hpp"

// What becomes of a login's processes when it logs out: logind ends the scope of its session where
// KillUserProcesses=yes holds for the user (logind.conf(5), pam_systemd(8)). Lingering does not help against
// it.

namespace remote::servers {

// As logind.sh tells it.
struct LogoutRules {
  bool in_session = false;  // the login's processes are in a session's scope
  bool kill_user_processes = false;
  std::vector<std::string> excluded{};  // KillExcludeUsers; none said: root
  std::vector<std::string> only{};      // KillOnlyUsers; none said: all

  // Takes in a line of these, whose first word (behind its kind) is `key`; false: it is none of them. Throws
  // Error for one that is not understood.
  bool take(std::string_view key, AnswerLine& line);
  // Whether jobs that this user starts end when the login does.
  bool ends_jobs_of(const std::string& user) const;
};

LogoutRules logout_rules(const ServerFacts& facts);

}  // namespace remote::servers
