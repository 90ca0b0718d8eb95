#include "agent/peers/peers.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <sodium.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/remove.hpp"
#include "agent/host/run.hpp"
#include "agent/job/hash_file.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/own_folder.hpp"
#include "agent/job/record.hpp"
#include "agent/job/regular_file.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t most_error_bytes = 65'536;

// The folder for known_hosts and the list of names. The destructor removes it and the socket of the forwarded
// agent.
class PullWork {
 public:
  PullWork(const Host& host, const wire::PullProjectRequest& request)
      : folder_(host.expand(request.work)), socket_(request.agent_socket) {
    if (!make_folders(folder_, 0700)) {
      throw std::runtime_error("cannot make " + folder_.string());
    }
  }
  PullWork(const PullWork&) = delete;
  PullWork& operator=(const PullWork&) = delete;
  ~PullWork() {
    remove_folder(folder_.parent_path(), folder_.filename(), "");
    if (!socket_.empty()) {
      ::unlink(socket_.c_str());
    }
  }

  const Path& folder() const { return folder_; }
  void put(const char* name, std::string_view text) const {
    if (!put_file(folder_ / name, text)) {
      throw std::runtime_error("cannot write to " + folder_.string());
    }
  }

 private:
  Path folder_;
  std::string socket_;
};

// The ssh command, with a separate known_hosts file and without questions. It uses the forwarded agent's
// keys, which belong to the client, and the keys in this home directory.
std::vector<std::string> make_ssh_words(const Host& host, const wire::PullProjectRequest& request) {
  std::vector<std::string> words{"ssh"};
  for (const char* option :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=known_hosts",
        "GlobalKnownHostsFile=/dev/null", "HostKeyAlias=remote-peer", "UpdateHostKeys=no", "CheckHostIP=no",
        "ConnectTimeout=10", "ServerAliveInterval=10", "ServerAliveCountMax=3", "LogLevel=ERROR",
        "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "ControlMaster=no", "ControlPath=none",
        "PermitLocalCommand=no"}) {
    words.insert(words.end(), {"-o", option});
  }
  for (const char* name : {"id_ed25519", "id_ecdsa", "id_rsa"}) {
    const Path key = host.home / ".ssh" / name;
    if (::access(key.c_str(), R_OK) == 0) {
      words.insert(words.end(), {"-i", key.string()});
    }
  }
  words.insert(words.end(), {"-p", std::to_string(request.port), "-l", request.user, "--"});
  return words;
}

// Returns a word for rsync's option -e.
std::string quote_for_rsync(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "'" : " '";
    for (const char c : word) {
      text += c == '\'' ? "''" : std::string(1, c);
    }
    text += '\'';
  }
  return text;
}

std::vector<std::string> make_pull_command(const Host& host, const wire::PullProjectRequest& request) {
  std::vector<std::string> ssh = make_ssh_words(host, request);
  if (request.only_probe) {
    ssh.insert(ssh.end(), {request.host, "true"});
    return ssh;
  }
  const bool is_ipv6 = request.host.find(':') != std::string::npos;
  std::vector<std::string> words{"rsync"};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  // The shell's startup files may have changed the working directory.
  words.insert(words.end(), {"-0", "--files-from=list", "-e", quote_for_rsync(ssh), "--rsync-path=cd; rsync",
                             "--", (is_ipv6 ? "[" + request.host + "]" : request.host) + ":" + request.path,
                             host.expand(request.project).string() + "/"});
  return words;
}

std::string read_end(const Descriptor& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::string text(most_error_bytes, '\0');
  const auto begin = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), begin);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace

void answer_pull_project(const Host& host, const wire::PullProjectRequest& request, const std::string& names,
                         Stream& stream) {
  const PullWork work(host, request);
  for (const char* program : {"ssh", "rsync"}) {
    if (host.find_program(program).empty()) {
      throw std::runtime_error(std::string("it has no ") + program);
    }
  }
  work.put("known_hosts", "remote-peer " + request.host_key + "\n");
  work.put("list", names);
  Host own = host;
  if (!request.agent_socket.empty()) {
    own.environment["SSH_AUTH_SOCK"] = request.agent_socket;
  }
  const Descriptor errors = hold_text("");
  const RunResult result = run(
      own, {.argv = make_pull_command(host, request),
            .folder = work.folder(),
            .limit = std::chrono::hours(24 * 365),
            .errors = errors.get(),
            .on_output =
                [&](std::string_view text) { stream.send(wire::PullProjectReply{.out = std::string(text)}); },
            .grace = std::chrono::seconds(5)});
  stream.send(wire::PullProjectReply{.code = result.code & 0xff, .errors = read_end(errors)});
}

wire::CompareFilesReply compare_with_digests(const Host& host, const wire::CompareFilesRequest& request,
                                             const std::string& digests, const Stream& stream) {
  constexpr std::size_t digits = 2 * crypto_hash_sha256_BYTES;
  const Path project = host.expand(request.project);
  wire::CompareFilesReply reply;
  for (const std::string& entry : split(digests, '\0')) {
    if (entry.size() <= digits + 1 || stream.is_closed()) {
      continue;
    }
    const Path path = project / entry.substr(digits + 1);
    if (hash_file(RegularFile(path)) != std::string_view(entry).substr(0, digits)) {
      ::unlink(path.c_str());
      ++reply.removed;
    }
  }
  return reply;
}

}  // namespace remote::agent
