#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"

// What this machine has sent to a server, in .remote/sent/SERVER: the only files there that --delete may take
// away. Whatever else lies in the project's folder may be what jobs wrote.

namespace remote::servers {

class SentFiles {
 public:
  // `login` tells which machine is meant: another one under the same name begins with an empty record.
  SentFiles(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login);

  // Files that were sent, are not excluded and do not exist here any more, and their folders that do not
  // either (with a slash at the end). Names are relative to the project. Without a record, or with one that
  // is damaged: none. Throws Error where the exclude file cannot be read, and Interrupted.
  std::vector<std::string> gone_here(const Cancel& cancel) const;

  // Takes names out of the record, then adds others; other processes may do so at the same time. Throws
  // Error where it cannot be written.
  void update(const std::vector<std::string>& sent, const std::vector<std::string>& forgotten) const;

 private:
  std::vector<std::string> read() const;

  const config::Config& config_;
  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::string place_;
};

}  // namespace remote::servers
