#include "support/test_sshd.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.hpp"
#include "base/strings.hpp"
#include "ssh/mux_socket.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace fs = std::filesystem;

int free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

void make_key(const fs::path& file, const std::string& type, const std::string& passphrase) {
  SubprocessSpec spec;
  spec.argv = {"ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", "test", "-f", file.string()};
  const ExecResult result = run_subprocess(std::move(spec));
  if (!result.status.success()) {
    throw std::runtime_error("ssh-keygen: " + result.err);
  }
}

std::string own_user() {
  // Read once, because getpwuid(3) is not thread-safe.
  static const std::string name = [] {
    const passwd* entry = ::getpwuid(::getuid());
    return std::string(entry != nullptr ? entry->pw_name : "root");
  }();
  return name;
}

bool over_openssh() {
  const char* wanted = std::getenv("REMOTE_TEST_CONNECTION");
  return wanted != nullptr && std::string_view(wanted) == "openssh";
}

TestClient::TestClient() : folder_("remote-client-") {
  make_key(key());
  // ssh also reads the machine's own /etc/ssh/ssh_config; Debian's version hashes.
  write_file_atomic(ssh_config(), "HashKnownHosts no\n");
}

TestClient::~TestClient() {
  for (const fs::path& folder : {masters(), this->folder() / ".ssh/remote"}) {
    for (const fs::path& socket : entries_of(folder)) {
      ssh::mux::end_master(socket);
    }
  }
}

std::string TestClient::public_key() const {
  return read_file(key().string() + ".pub");
}

config::Config TestClient::config() const {
  config::Config config;
  config.project = folder();
  config.connect_by = over_openssh() ? config::ConnectBy::openssh : config::ConnectBy::automatic;
  return config;
}

ssh::ConnectorOptions TestClient::options() const {
  ssh::ConnectorOptions options;
  options.user_config = ssh_config();
  options.known_hosts = known_hosts();
  options.masters = masters();
  options.on_new_host_key = [keys = new_keys_](const NewHostKey& key) { keys->push_back(key); };
  return options;
}

std::vector<NewHostKey> TestClient::take_new_host_keys() const {
  return std::exchange(*new_keys_, {});
}

std::unique_ptr<ssh::Connector> TestClient::connector() const {
  return ssh::make_connector(config(), options());
}

TestSshd::TestSshd(const std::string& authorized, std::vector<std::string> extra_config,
                   std::string host_key_type)
    : folder_("remote-sshd-"), extra_(std::move(extra_config)), port_(free_port()) {
  write_file_atomic(folder() / "authorized_keys", authorized, 0600);
  change_host_key(host_key_type);
}

TestSshd::~TestSshd() {
  stop();
}

void TestSshd::change_host_key(const std::string& type) {
  stop();
  for (const char* name : {"host_key", "host_key.pub"}) {
    fs::remove(folder() / name);
  }
  make_key(folder() / "host_key", type);
  start();
}

void TestSshd::start() {
  if (::getuid() == 0) {
    ::mkdir("/run/sshd", 0755);  // sshd run by root confines its helper there
  }
  std::string text = fmt::format(
      "Port {}\nListenAddress 127.0.0.1\nHostKey {}/host_key\nAuthorizedKeysFile {}/authorized_keys\n"
      "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
      "KbdInteractiveAuthentication no\nPrintMotd no\nLogLevel VERBOSE\nSetEnv HOME={}\n",
      port_, folder().string(), folder().string(), folder().string());
  for (const std::string& line : extra_) {
    text += line + "\n";
  }
  write_file_atomic(folder() / "sshd_config", text);
  fs::remove(folder() / "log");
  SubprocessSpec spec;
  const auto program = find_program("sshd");
  if (!program) {
    throw std::runtime_error("sshd is missing: install openssh-server");
  }
  spec.argv = {program->string(), "-D", "-f", folder() / "sshd_config", "-E", folder() / "log"};
  process_ = std::make_unique<Subprocess>(spec);
  if (!eventually([&] { return log().find("Server listening") != std::string::npos; })) {
    throw std::runtime_error("sshd did not start: " + log());
  }
}

std::string TestSshd::log() const {
  return read_file_if_there(folder() / "log").value_or("");
}

std::vector<pid_t> sshd_sessions(pid_t listener) {
  std::vector<pid_t> pids;
  for (const std::string& word :
       split_words(read_proc(listener, fmt::format("task/{}/children", listener)))) {
    const pid_t pid = parse_number<pid_t>(word).value();
    // A user's sshd has two processes per session: the one that holds the link is a child of the other.
    if (read_proc(pid, "comm").starts_with("sshd")) {
      pids.push_back(pid);
      const std::vector<pid_t> below = sshd_sessions(pid);
      pids.insert(pids.end(), below.begin(), below.end());
    }
  }
  return pids;
}

std::vector<pid_t> TestSshd::session_pids() const {
  return sshd_sessions(pid());
}

std::vector<pid_t> TestSshd::signal_sessions(int number) const {
  const std::vector<pid_t> sessions = session_pids();
  for (const pid_t session : sessions) {
    ::kill(session, number);
  }
  return sessions;
}

void TestSshd::kill_sessions() const {
  const std::vector<pid_t> sessions = signal_sessions(SIGKILL);
  until([&] { return std::ranges::none_of(sessions, lives); }, "the end of the sessions");
}

void pump_until_broken(ssh::Connection& connection) {
  for (int i = 0; i < 100; ++i) {
    connection.pump(std::chrono::milliseconds(200));
  }
}

void TestSshd::stop() {
  if (!process_) {
    return;
  }
  const std::vector<pid_t> sessions = session_pids();
  process_->kill(SIGTERM);
  process_->wait();
  process_.reset();
  for (const pid_t session : sessions) {
    ::kill(session, SIGTERM);
  }
}

config::Server TestSshd::server(const fs::path& key, const std::string& name) const {
  config::Server server;
  server.name = name;
  server.hostname = "127.0.0.1";
  server.port = port_;
  server.username = own_user();
  server.private_key = key;
  return server;
}

}  // namespace remote::test
