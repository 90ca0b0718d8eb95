#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <remote/exit_status.hpp>

#include "base/files.hpp"
#include "config/config.hpp"
#include "ssh/connection.hpp"

namespace remote::servers {

// The log of one command on one server: a folder TIME-NAME-SERVER with stdout.log, stderr.log and exit_code.
// It is created at the first byte, and only the newest `kept` folders are kept. If a log cannot be written,
// it is given up and the command continues. Not thread-safe.
class CommandLog {
 public:
  CommandLog(const config::Config& config, const std::string& name, const std::string& server);

  // If the log was neither finished nor given up, records that the command was interrupted.
  ~CommandLog();
  CommandLog(const CommandLog&) = delete;
  CommandLog& operator=(const CommandLog&) = delete;

  void write(ssh::Stream stream, std::string_view data);
  // Writes exit_code. Creates the folder even if nothing was written.
  void finish(const ExitStatus& status);
  // The command did not end by itself, because the connection broke. Writes the reason to stderr.log, and no
  // exit_code.
  void give_up(std::string_view reason);

  // The log's folder, for messages.
  const std::filesystem::path& folder() const { return folder_; }

  static constexpr std::size_t kept = 200;

 private:
  bool open();

  std::filesystem::path logs_;
  std::filesystem::path folder_;
  UniqueFd out_;
  UniqueFd err_;
  bool tried_ = false;
  bool closed_ = false;
};

// Removes all but the newest `kept` log folders. Does nothing if another thread or process is doing so. Keeps
// folders with other names.
void prune_logs(const std::filesystem::path& logs_folder, std::size_t kept);

}  // namespace remote::servers
