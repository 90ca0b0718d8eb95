#include "ssh/rsync_tunnel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <thread>

#include <poll.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/decimal.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/login_shell.hpp"
#include "base/paths.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "server/agent_command.hpp"
#include "ssh/pump.hpp"
#include "ssh/rsync_pipe.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

// The helper's path from the build configuration or, if it is missing there because the library was moved,
// the one on PATH.
fs::path installed_helper() {
  const fs::path configured(REMOTE_CONFIGURED_RSYNC_HELPER);
  const auto found = is_there(configured) ? std::nullopt : find_program("remote-rsync-pipe");
  return found ? fs::path(*found) : configured;
}

using Clock = std::chrono::steady_clock;

// Everything that the login shell prints before this line is ignored. rsync's bytes begin after it.
constexpr std::string_view begin_mark = "remote-rsync-begins";

class RsyncTunnel {
 public:
  RsyncTunnel(Connection& connection, const RsyncRequest& request, std::string rsync, const Cancel& cancel);
  ~RsyncTunnel();
  RsyncTunnel(const RsyncTunnel&) = delete;
  RsyncTunnel& operator=(const RsyncTunnel&) = delete;

  RsyncResult run();

 private:
  SubprocessSpec spec();
  void open_channel();
  void take_output(Stream stream, std::string_view data);
  void take_errors(std::string_view data);
  void end_helper_when_finished();
  void drain(UniqueFd& fd, Stream stream);
  void take_line(std::string_view line);

  Connection& connection_;
  Pump pump_;
  const RsyncRequest& request_;
  const std::string program_;
  TempFolder folder_;
  UniqueFd control_;     // to the helper
  UniqueFd helper_end_;  // the helper's end, until the helper is started
  UniqueFd from_rsync_;  // data for the server
  UniqueFd to_rsync_;    // data from the server
  Greeting greeting_;
  LineCutter lines_;
  RsyncResult result_;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::unique_ptr<Flow> flow_;
  std::optional<Subprocess> rsync_;
};

RsyncTunnel::RsyncTunnel(Connection& connection, const RsyncRequest& request, std::string rsync,
                         const Cancel& cancel)
    : connection_(connection),
      pump_(connection, cancel),
      request_(request),
      program_(std::move(rsync)),
      folder_("remote-rsync-") {
  std::tie(control_, helper_end_) = socket_pair();
  // rsync splits its -e option at spaces, by rules that differ between versions. A link in rsync's working
  // directory needs no quoting, wherever the program is.
  std::error_code error;
  const fs::path program = request.pipe_program.empty() ? installed_helper() : request.pipe_program;
  if (!fs::exists(program, error)) {
    throw Error(
        "cannot start rsync", "its helper program " + program.string() + " is not there",
        "name remote-rsync-pipe in Hooks::rsync_helper (CMake's find_package(remote) gives its place as "
        "remote_RSYNC_HELPER), or put it into a folder of PATH");
  }
  fs::create_symlink(program, folder_.path() / "pipe", error);
  if (error) {
    throw Error("cannot start rsync", (folder_.path() / "pipe").string() + ": " + error.message(),
                "can you write to the folder for temporary files? TMPDIR sets another");
  }
}

RsyncTunnel::~RsyncTunnel() {
  if (!rsync_ || rsync_->poll()) {
    return;
  }
  // It may have to save a partial file.
  rsync_->kill(SIGTERM);
  control_.reset();
  from_rsync_.reset();
  to_rsync_.reset();
  const auto give_up = Clock::now() + std::chrono::seconds(2);
  while (!rsync_->poll() && Clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

SubprocessSpec RsyncTunnel::spec() {
  SubprocessSpec spec;
  const int number = helper_end_.get();
  spec.argv = {program_, "-e", std::string("./pipe ") + rsync_pipe_command + " " + std::to_string(number),
               // Passes paths over the protocol, so that the server's login shell does not interpret them.
               "-s",
               // If the connection to a server is silent, the server's rsync exits and removes its temporary
               // file. The time is long, because rsync is silent while it reads a large file.
               "--timeout=600"};
  if (!request_.rules.empty()) {
    const fs::path file = folder_.path() / "rules";
    write_file_atomic(file, request_.rules, 0600);
    std::ranges::move(rules_from(file.string()), std::back_inserter(spec.argv));
  }
  spec.argv.insert(spec.argv.end(), request_.args.begin(), request_.args.end());
  spec.directory = folder_.path();
  spec.set_env = {{"LC_ALL", "C"}};
  spec.unset_env =
      "RSYNC_";  // the user's own settings: RSYNC_ICONV changes names, RSYNC_PARTIAL_DIR leaves files behind
  spec.pass_fds = {{number, number}};
  spec.pipe_stdout = true;
  spec.pipe_stderr = true;
  spec.new_session = true;  // Ctrl-C only reaches this process, which then stops rsync
  return spec;
}

void RsyncTunnel::open_channel() {
  std::optional<PipeOffer> offer = receive_offer(control_.get());
  if (!offer) {
    control_.reset();  // rsync will report why it exited
    return;
  }
  from_rsync_ = std::move(offer->from_rsync);
  to_rsync_ = std::move(offer->to_rsync);
  // One quoted word has the same meaning in every login shell, including fish and tcsh. The working
  // directory, umask and rsync settings that a startup file has set must not affect where the files go and
  // who can access them.
  const std::string command =
      "exec /bin/sh -c " + shell_quote("unset -f cd echo umask; " + std::string(server::find_home) +
                                       "cd || exit; umask u=rwx,go-w; unset "
                                       "RSYNC_CHECKSUM_LIST RSYNC_COMPRESS_LIST "
                                       "RSYNC_CONNECT_PROG RSYNC_ICONV RSYNC_MAX_ALLOC RSYNC_OLD_ARGS "
                                       "RSYNC_PARTIAL_DIR RSYNC_PROTECT_ARGS; command -v rsync >/dev/null || "
                                       "PATH=$PATH:/usr/local/bin:/usr/bin:/bin; echo " +
                                       std::string(begin_mark) + "; exec " + shell_join(offer->command));
  flow_ = std::make_unique<Flow>(pump_, command,
                                 [this](Stream stream, std::string_view data) { take_output(stream, data); });
  flow_->expect_answer([this] { return greeting_.over(); });
  flow_->pass_on_to(to_rsync_.get());
  flow_->send_from(from_rsync_.get(), [this](char /*last*/) { flow_->end_input(); });
}

void RsyncTunnel::take_output(Stream stream, std::string_view data) {
  received_ += data.size();
  if (stream == Stream::err) {
    take_errors(data);
    return;
  }
  // The last line of the greeting may lack a newline.
  flow_->pass_on(greeting_.strip(data, [](std::string_view line) { return line.ends_with(begin_mark); }));
  result_.server_began = greeting_.over();
}

void RsyncTunnel::take_errors(std::string_view data) {
  append_end(result_.err, data);
  if (request_.log) {
    request_.log(Stream::err, data);
  }
}

void RsyncTunnel::end_helper_when_finished() {
  if (!flow_ || !flow_->over()) {
    return;
  }
  result_.remote_status = flow_->channel().status();
  sent_ = flow_->sent();
  to_rsync_.reset();
  const char code = static_cast<char>(result_.remote_status ? result_.remote_status->shell_code() : 255);
  write_all(control_.get(), {&code, 1});
  control_.reset();
  flow_.reset();
  from_rsync_.reset();
}

void RsyncTunnel::take_line(std::string_view line) {
  if (line.empty()) {
    return;
  }
  if (const auto progress = parse_rsync_progress(line)) {
    if (request_.on_progress) {
      request_.on_progress(*progress);
    }
    return;
  }
  if (request_.log) {
    request_.log(Stream::out, std::string(line) + "\n");
  }
  if (request_.on_line) {
    request_.on_line(line);
  }
}

void RsyncTunnel::drain(UniqueFd& fd, Stream stream) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count > 0) {
    const std::string_view data(buffer.data(), static_cast<std::size_t>(count));
    if (stream == Stream::out) {
      lines_.add(data, [this](std::string_view line) { take_line(line); });
      return;
    }
    take_errors(data);
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    fd.reset();
  }
}

RsyncResult RsyncTunnel::run() {
  const Stopwatch watch;
  log_info(connection_.server(), "rsync {}", join(request_.args, " "));
  rsync_.emplace(spec());
  helper_end_.reset();
  while (rsync_->stdout_fd || rsync_->stderr_fd) {
    std::array<pollfd, 3> fds{{{rsync_->stdout_fd.get(), POLLIN, 0},
                               {rsync_->stderr_fd.get(), POLLIN, 0},
                               {flow_ || result_.remote_status ? -1 : control_.get(), POLLIN, 0}}};
    pump_.wait(std::chrono::milliseconds(1000), fds);
    if (fds[0].revents != 0) {
      drain(rsync_->stdout_fd, Stream::out);
    }
    if (fds[1].revents != 0) {
      drain(rsync_->stderr_fd, Stream::err);
    }
    if (fds[2].revents != 0) {
      open_channel();
    }
    end_helper_when_finished();
    // If rsync exits early, its helper, which keeps its stderr open, does not have to wait for the server.
    if (rsync_->poll()) {
      control_.reset();
    }
  }
  take_line(lines_.rest());
  result_.status = rsync_->wait();
  log_info(connection_.server(), "rsync: {} after {}, {} bytes sent, {} received", result_.status.describe(),
           watch.text(), sent_, received_);
  if (!result_.server_began) {
    append_end(result_.err, greeting_.text());
  }
  return std::move(result_);
}

// Parses "12.34MB/s" as bytes. rsync's units are multiples of 1024.
std::optional<double> parse_rate(std::string_view text) {
  text.remove_suffix(std::string_view("/s").size());
  double unit = 1;
  for (const char* name : {"kB", "MB", "GB", "TB"}) {
    unit *= 1024;
    if (text.ends_with(name)) {
      const auto number = parse_decimal(text.substr(0, text.size() - 2));
      return number ? std::optional(*number * unit) : std::nullopt;
    }
  }
  return std::nullopt;
}

// Parses "0:00:03"; 0 if rsync does not know.
std::chrono::seconds parse_left(std::string_view text) {
  std::int64_t seconds = 0;
  const std::vector<std::string> parts = split(text, ':');
  for (const std::string& part : parts) {
    seconds = seconds * 60 + (parts.size() == 3 ? parse_number<int>(part).value_or(0) : 0);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

std::string local_rsync(const Cancel& cancel) {
  const char* path = std::getenv("PATH");
  std::string other;
  for (const std::string& folder :
       split(std::string(path == nullptr ? "" : path) + ":/opt/homebrew/bin:/usr/local/bin:/opt/local/bin",
             ':')) {
    std::string program = (absolute_path(folder) / "rsync").string();
    if (folder.empty() || ::access(program.c_str(), X_OK) != 0) {
      continue;
    }
    SubprocessSpec spec;
    spec.argv = {program, "--version"};
    spec.set_env = {{"LC_ALL", "C"}};
    const std::string version = run_subprocess(spec, {}, cancel).out;
    constexpr std::string_view genuine = "rsync  version ";
    if (version.starts_with(genuine) && version[genuine.size()] >= '3') {
      return program;
    }
    if (other.empty()) {
      other = program + " is not rsync 3, but " + version.substr(0, version.find('\n'));
    }
  }
  throw Error("cannot send files", other.empty() ? "rsync was not found on this machine" : other,
              "install rsync 3: apt-get install rsync, or brew install rsync");
}

RsyncResult run_rsync(Connection& connection, const RsyncRequest& request, const Cancel& cancel) {
  return RsyncTunnel(connection, request, local_rsync(cancel), cancel).run();
}

std::vector<std::string> rules_from(const std::string& source) {
  return {"--from0", "--filter=merge " + source};
}

std::string remote_spec(std::string_view path) {
  if (path.starts_with("~/")) {
    path.remove_prefix(2);  // rsync's server starts in the home directory
  } else if (path == "~" || path.empty()) {
    path = ".";
  }
  return "remote:" + rsync_pattern(path);  // the server's rsync interprets it as a pattern
}

std::string rsync_pattern(std::string_view name) {
  // The backslash is an escape character only in patterns.
  const bool wild = name.find_first_of("*?[") != std::string_view::npos;
  std::string pattern;
  for (const char c : name) {
    if (wild && std::string_view("*?[\\").find(c) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern;
}

std::optional<TransferProgress> parse_rsync_progress(std::string_view line) {
  const std::vector<std::string> words = split_words(line);
  if (words.size() < 4 || line[0] != ' ' || !words[1].ends_with('%') || !words[2].ends_with("/s") ||
      words[3].find(':') == std::string::npos) {
    return std::nullopt;
  }
  std::string digits = words[0];
  std::erase(digits, ',');
  const auto bytes = parse_number<std::uint64_t>(digits);
  const auto percent = parse_number<int>(std::string_view(words[1]).substr(0, words[1].size() - 1));
  const auto rate = parse_rate(words[2]);
  if (!bytes || !percent || !rate) {
    return std::nullopt;
  }
  TransferProgress progress;
  progress.bytes = *bytes;
  progress.percent = std::clamp(*percent, 0, 100);
  progress.bytes_per_second = *rate;
  progress.left = parse_left(words[3]);
  return progress;
}

}  // namespace remote::ssh
