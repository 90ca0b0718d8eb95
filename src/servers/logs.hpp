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
// Made at the first byte; the newest `kept` folders stay. A log that cannot be written never stops the
// command: it is given up. One thread.
class CommandLog {
 public:
  CommandLog(const config::Config& config, const std::string& name, const std::string& server);

  // A log that was neither finished nor given up says that the command was interrupted.
  ~CommandLog();
  CommandLog(const CommandLog&) = delete;
  CommandLog& operator=(const CommandLog&) = delete;

  void write(ssh::Stream stream, std::string_view data);
  // Writes exit_code; makes the folder if nothing was written.
  void finish(const ExitStatus& status);
  // The command itself did not end (the link broke): the reason goes into stderr.log, exit_code stays away.
  void give_up(std::string_view reason);

  // Where the log is; for messages.
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

// Removes all but the newest `kept` log folders; nothing while another thread or process does. Folders of
// another form stay.
void prune_logs(const std::filesystem::path& logs_folder, std::size_t kept);

}  // namespace remote::servers
