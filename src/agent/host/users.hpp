#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "agent/host/host.hpp"

namespace remote::agent {

// The name of a user ("passwd") or group ("group"), by the file in /etc, else by `getent`, which also asks a
// directory service. The number if it has none.
std::string find_account(const Host& host, const std::string& database, unsigned id);

// The names of users, by /etc/passwd, else by `getent`, which also asks a directory service. A static program
// cannot call getpwuid(). One thread.
class UserNames {
 public:
  explicit UserNames(const Host& host) : host_(host) {}

  // The number if the name is missing or has other characters than ASCII letters, digits and "._-".
  std::string find(uid_t uid);

 private:
  std::string look_up(uid_t uid) const;

  const Host& host_;
  std::map<uid_t, std::string> known_;
};

}  // namespace remote::agent
