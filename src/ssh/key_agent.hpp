#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <remote/cancel.hpp>
#include <sys/types.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"

namespace remote::ssh {

// An SSH agent (ssh-agent) that holds a few key files, for forwarding no other key than these. It ends with
// the object, and by itself when this process dies.
class KeyAgent {
 public:
  // Starts it. Throws Error where ssh-agent cannot be started.
  KeyAgent();
  ~KeyAgent();
  KeyAgent(const KeyAgent&) = delete;
  KeyAgent& operator=(const KeyAgent&) = delete;

  // False when the key cannot be had without asking a person: it has a passphrase, or is not there.
  bool add(const std::filesystem::path& key, const Cancel& cancel);
  std::filesystem::path socket() const { return folder_.path() / "agent"; }

 private:
  TempFolder folder_;  // mode 0700
  std::optional<Subprocess> keeper_;
  pid_t agent_ = -1;
};

}  // namespace remote::ssh
