#include "support/processes.hpp"

#include <filesystem>
#include <optional>
#include <system_error>

#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"

namespace remote::test {
namespace {
namespace fs = std::filesystem;
}  // namespace

std::string read_proc(pid_t pid, const std::string& name) {
  try {
    return read_file_if_there(fs::path("/proc") / std::to_string(pid) / name).value_or("");
  } catch (const Error&) {
    return "";
  }
}

bool lives(pid_t pid) {
  const std::string text = read_proc(pid, "stat");
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && text.substr(end + 2, 1) != "Z";
}

std::string command_line(pid_t pid) {
  return read_proc(pid, "cmdline");
}

std::string environment_of(pid_t pid) {
  return read_proc(pid, "environ");
}

std::vector<pid_t> processes_with(const std::string& variable) {
  return processes_with_variable_like(variable + '\0');
}

std::vector<pid_t> processes_with_variable_like(const std::string& beginning) {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::optional<int> pid = parse_number<int>(entry.path().filename().string());
    if (!pid || *pid == ::getpid()) {
      continue;
    }
    const std::string text = '\0' + environment_of(*pid);
    if (text.find('\0' + beginning) != std::string::npos && lives(*pid)) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

Subprocess started(std::vector<std::string> argv) {
  SubprocessSpec spec;
  spec.argv = std::move(argv);
  spec.pipe_stdout = true;
  spec.new_session = true;
  Subprocess child(spec);
  char byte = 0;
  EXPECT_EQ(::read(child.stdout_fd.get(), &byte, 1), 1) << "it does not run";
  return child;
}

std::string undumpable_daemon(const std::string& pid_file) {
  return "/usr/bin/python3 -c '\n"
         "import ctypes, os, time\n"
         "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
         "if os.fork(): os._exit(0)\n"
         "os.setsid()\n"
         "if os.fork(): os._exit(0)\n"
         "null = os.open(os.devnull, os.O_RDWR)\n"
         "for fd in (0, 1, 2): os.dup2(null, fd)\n"
         "open(\"" +
         pid_file +
         "\", \"w\").write(str(os.getpid()))\n"
         "time.sleep(1000)\n"
         "'";
}

}  // namespace remote::test
