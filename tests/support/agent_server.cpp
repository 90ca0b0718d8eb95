#include "support/agent_server.hpp"

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "wire/frame.hpp"
#include "wire/request.hpp"

namespace remote::test {

namespace fs = std::filesystem;

namespace {

// Returns the next line with its newline, or the rest of the stream at its end.
std::string read_answer_line(int fd) {
  std::string line;
  char c = 0;
  while (!line.ends_with('\n') && ::read(fd, &c, 1) == 1) {
    line += c;
  }
  return line;
}

std::vector<std::string> split_zeros(const std::string& text) {
  std::vector<std::string> parts = split(text, '\0');
  if (!parts.empty() && parts.back().empty()) {
    parts.pop_back();
  }
  return parts;
}

std::string as_text(const wire::Bytes& frames) {
  return {frames.begin(), frames.end()};
}

// The first request, after the line with its size.
std::string make_request() {
  wire::FactsRequest request;
  request.clock = true;
  wire::Bytes frames;
  wire::append_frame(frames, wire::FrameKind::message, 1, wire::encode(wire::Request(request)));
  wire::append_frame(frames, wire::FrameKind::end, 1, {});
  return std::to_string(frames.size()) + "\n" + as_text(frames);
}

// Whether these frames answer the first request.
bool is_answer(const std::string& bytes) {
  wire::FrameReader reader;
  reader.add(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  while (const auto frame = reader.next()) {
    if (frame->stream == 1 && frame->kind == wire::FrameKind::message) {
      const auto reply = wire::decode<wire::Reply>(frame->payload);
      return std::get<wire::FactsReply>(reply).clock.has_value();
    }
  }
  return false;
}

}  // namespace

std::string AgentStart::failure() const {
  const std::string_view mark = server::agent_failed;
  return !lines.empty() && lines.back().starts_with(mark) ? lines.back().substr(mark.size()) : "";
}

std::string AgentServer::own_architecture() {
  utsname names = {};
  ::uname(&names);
  return names.machine;
}

AgentServer::AgentServer(ServerShell shell) {
  std::signal(SIGPIPE, SIG_IGN);  // a shell that has exited no longer reads
  fs::permissions(root(), fs::perms::others_exec | fs::perms::group_exec, fs::perm_options::add);
  fs::create_directory(home());
  shell_ = root() / "sh";
  const std::string name = to_string(shell);
  fs::create_symlink(find_program(name).value(), shell_);
  environment = {{"HOME", home().string()}, {"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}};
  if (shell == ServerShell::busybox) {
    const fs::path tools = root() / "busybox";
    fs::create_directory(tools);
    SubprocessSpec install;
    install.argv = {name, "--install", "-s", tools.string()};
    run_subprocess(std::move(install));
    fs::create_symlink("/usr/bin/python3", tools / "python3");
    environment["PATH"] = tools.string();
  }
}

void AgentServer::remove_tools(const std::vector<std::string>& names) {
  const fs::path tools = root() / "tools";
  fs::create_directory(tools);
  for (const char* name : {"mkdir", "xz", "cat", "sha256sum", "dd", "mktemp", "id", "rm", "rmdir", "sed",
                           "ls", "seq", "grep", "chmod", "cp", "mv", "uname", "python3"}) {
    const std::string& path = environment["PATH"];
    fs::create_symlink((path.find(':') == std::string::npos ? fs::path(path) : "/usr/bin") / name,
                       tools / name);
  }
  for (const std::string& name : names) {
    fs::remove(tools / name);
  }
  environment["PATH"] = tools.string();
}

void AgentServer::set_mounts(const std::string& commands) {
  before = {"unshare", "-m", "sh", "-ec", commands + "\nexec \"$@\"", "sh"};
}

AgentStart AgentServer::start() {
  SubprocessSpec spec;
  spec.argv = before;
  spec.argv.insert(spec.argv.end(), {"env", "-i"});
  for (const auto& [name, value] : environment) {
    spec.argv.push_back(name + "=" + value);
  }
  const std::string login =
      login_shell.front() == "sh" ? shell_.string() : find_program(login_shell.front()).value().string();
  spec.argv.push_back(login);
  spec.argv.insert(spec.argv.end(), login_shell.begin() + 1, login_shell.end());
  spec.argv.insert(spec.argv.end(), {"-c", replace_all(server::agent_command(folder), "exec /bin/sh ",
                                                       "exec " + shell_.string() + " ")});
  spec.pipe_stdin = spec.pipe_stdout = spec.pipe_stderr = true;
  spec.new_session = true;
  Subprocess process(spec);
  AgentStart start;
  write_all(process.stdin_fd.get(), make_request());
  for (std::string line; !(line = read_answer_line(process.stdout_fd.get())).empty();) {
    if (line == "\n") {
      ++start.empty_lines;
      continue;
    }
    const std::string text(trim(line));
    start.lines.push_back(text);
    const auto need = server::parse_agent_need(text);
    if (need && !start.needed) {
      start.needed = true;
      start.has_xz = need->has_xz;
      std::string data = server::agent_installation(agent, need->has_xz, folder, bin);
      const std::size_t whole = data.size();
      change(data);
      const bool is_cut = data.size() < whole;
      write_all(process.stdin_fd.get(), is_cut ? data : data + make_request());
      if (is_cut) {
        process.stdin_fd.reset();
      }
    } else if (text == server::agent_here) {
      const fs::path proc = fs::path("/proc") / std::to_string(process.pid());
      std::error_code error;
      start.place = fs::read_symlink(proc / "exe", error);
      start.environment = split_zeros(read_file(proc / "environ"));
      for (const fs::directory_entry& entry : fs::directory_iterator(proc / "fd", error)) {
        start.open_files.push_back(entry.path().filename());
      }
      std::sort(start.open_files.begin(), start.open_files.end());
      wire::Bytes last;
      wire::append_frame(last, wire::FrameKind::end, 0, {});
      write_all(process.stdin_fd.get(), as_text(last));
      std::string frames;
      for (std::string line; !(line = read_answer_line(process.stdout_fd.get())).empty();) {
        frames += line;
      }
      start.answered = is_answer(frames);
    }
  }
  for (std::string line; !(line = read_answer_line(process.stderr_fd.get())).empty();) {
    start.err += line;
  }
  const ExitStatus status = process.wait();
  start.status = status.success() ? 0 : 1;
  return start;
}

}  // namespace remote::test
