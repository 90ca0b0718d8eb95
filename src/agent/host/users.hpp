#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "agent/host/host.hpp"

namespace remote::agent {

// The name of a user ("passwd") or group ("group"), from the file in /etc or from `getent`, which also
// queries a directory service. If it has no name, returns the number.
std::string find_account(const Host& host, const std::string& database, unsigned id);

// The names of users, from /etc/passwd or from `getent`, which also queries a directory service. A static
// program cannot call getpwuid(). Not thread-safe.
class UserNames {
 public:
  explicit UserNames(const Host& host) : host_(host) {}

  // The number, if the name is missing or has characters other than ASCII letters, digits and "._-".
  std::string find(uid_t uid);

 private:
  std::string look_up(uid_t uid) const;

  const Host& host_;
  std::map<uid_t, std::string> known_;
};

}  // namespace remote::agent
