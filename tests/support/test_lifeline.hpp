#pragma once

#include "base/hashing.hpp"
#include "jobs/start.hpp"
#include "support/test_sshd.hpp"

namespace remote::test {

// Of the pretended servers "a", the hub, and "b", on a free port of this machine.
inline jobs::Lifeline lifeline_of_two() {
  jobs::Lifeline lifeline;
  lifeline.token = random_hex(64);
  lifeline.servers = {"a", "b"};
  lifeline.address = "127.0.0.1";
  lifeline.port = free_port();
  lifeline.grace_s = 0;
  lifeline.timeout_s = 30;
  return lifeline;
}

}  // namespace remote::test
