#include "servers/logs.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>
#include <vector>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <remote/error.hpp>
#include <sys/file.h>

#include "base/paths.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

// "20261121-073000.123", which sorts by time.
std::string time_stamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  return fmt::format("{:%Y%m%d-%H%M%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(millis / 1000)),
                     millis % 1000);
}

bool is_log_folder(const std::string& name) {
  const std::string_view form = "00000000-000000.000-";
  const auto fits = [](char wanted, char c) {
    return wanted == '0' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == wanted;
  };
  return name.size() > form.size() && std::equal(form.begin(), form.end(), name.begin(), fits);
}

}  // namespace

CommandLog::CommandLog(const config::Config& config, const std::string& name, const std::string& server)
    : logs_(config.local(config.logs_folder)), folder_(logs_ / (time_stamp() + "-" + name + "-" + server)) {}

bool CommandLog::open() {
  if (tried_) {
    return static_cast<bool>(out_) && static_cast<bool>(err_);
  }
  tried_ = true;
  try {
    make_folders(logs_);
    // If two commands with the same name run on a server in the same millisecond, the second uses the next
    // free name.
    std::error_code error;
    const fs::path base = folder_;
    for (int i = 2; !fs::create_directory(folder_, error) && !error && i < 1000; ++i) {
      folder_ = base.string() + "-" + std::to_string(i);
    }
    const auto create = [this](const char* file) {
      return UniqueFd(::open((folder_ / file).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    };
    out_ = create("stdout.log");
    err_ = create("stderr.log");
    prune_logs(logs_, kept);
  } catch (const Error&) {
    return false;
  }
  return static_cast<bool>(out_) && static_cast<bool>(err_);
}

void CommandLog::write(ssh::Stream stream, std::string_view data) {
  if (open()) {
    write_all(stream == ssh::Stream::out ? out_.get() : err_.get(), data);
  }
}

CommandLog::~CommandLog() {
  if (tried_ && !closed_) {
    give_up("interrupted");
  }
}

void CommandLog::finish(const ExitStatus& status) {
  closed_ = true;
  if (open()) {
    const UniqueFd file(
        ::open((folder_ / "exit_code").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    write_all(file.get(), std::to_string(status.shell_code()) + "\n");
  }
}

void CommandLog::give_up(std::string_view reason) {
  closed_ = true;
  write(ssh::Stream::err, std::string(reason) + "\n");
}

void prune_logs(const fs::path& logs_folder, std::size_t kept) {
  const UniqueFd lock(::open(logs_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return;  // a command on many servers creates a folder for each, and one of its threads is already doing
             // this
  }
  std::vector<fs::path> folders = entries_of(logs_folder);
  std::erase_if(folders, [](const fs::path& entry) { return !is_log_folder(entry.filename().string()); });
  if (folders.size() <= kept) {
    return;
  }
  std::sort(folders.begin(), folders.end());
  folders.resize(folders.size() - kept);
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::remove_all(folder, error);
  }
}

}  // namespace remote::servers
