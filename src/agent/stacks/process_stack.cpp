#include "agent/stacks/process_stack.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/run.hpp"
#include "agent/job/regular_file.hpp"
#include "agent/stacks/threads.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int faulthandler_signal = 50;  // see sitecustomize.py
constexpr std::size_t most_dump = std::size_t{256} << 10U;
constexpr std::size_t most_threads = 20;  // in the data from the kernel

// The rest of the line "KEY:\tVALUE" of /proc/PID/status.
std::string read_status_line(const Path& folder, std::string_view key) {
  for (const std::string& line : read_lines(folder / "status")) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":\t")) {
      return line.substr(key.size() + 2);
    }
  }
  return "";
}

bool catches_signal(const Path& process) {
  const std::string caught =
      read_status_line(process, "SigCgt");  // 16 hexadecimal digits: bit 49 is in the fourth
  return caught.size() == 16 && std::string_view("2367abef").find(caught[3]) != std::string_view::npos;
}

// In a container, the path differs, so compare the files. Other files are not accessed, because their storage
// may hang.
bool has_open(const Path& process, const Path& file) {
  const Path folder = process / "fd";
  for (const std::string& name : list_names(folder)) {
    if (read_link(folder / name).ends_with("/stacks") && is_same_file(folder / name, file)) {
      return true;
    }
  }
  return false;
}

std::string read_from(const RegularFile& file, std::uint64_t offset) {
  std::string text(most_dump, '\0');
  text.resize(file.read(text.data(), text.size(), offset));
  return text;
}

std::optional<std::uint64_t> find_size(const Path& file) {
  const RegularFile open(file);
  return open ? std::optional(open.size()) : std::nullopt;
}

}  // namespace

StackReader::StackReader(const Host& host, const std::string& activate)
    : host_(host), py_spy_(host.find_program("py-spy")) {
  if (!py_spy_.empty() || activate.empty()) {
    return;
  }
  try {
    const std::string found =
        run(host, {.argv = {"sh", "-c", "eval \"$0\" >/dev/null 2>&1; command -v py-spy", activate}}).out;
    if (found.starts_with('/')) {
      py_spy_ = found.substr(0, found.find('\n'));
    }
  } catch (const CannotStart&) {
  }
}

wire::ProcessStack StackReader::read(const PythonProcess& process, const std::string& id,
                                     const Path& job_folder) const {
  wire::ProcessStack stack{.id = id, .pid = process.pid, .rank = process.rank};
  if (ask_py_spy(stack) || ask_by_signal(stack, job_folder / "stacks")) {
    stack.why.clear();
  } else {
    read_kernel(stack);
  }
  return stack;
}

wire::ProcessStack StackReader::read_other(int pid, const std::string& id) const {
  wire::ProcessStack stack{.id = id, .pid = pid, .why = "it is not a Python process"};
  read_kernel(stack);
  return stack;
}

bool StackReader::ask_py_spy(wire::ProcessStack& stack) const {
  if (py_spy_.empty()) {
    stack.why = "there is no py-spy";
    return false;
  }
  std::string text;
  try {
    const RunResult result = run(host_, {.argv = {py_spy_, "dump", "--pid", text::format("{}", stack.pid)},
                                         .limit = std::chrono::seconds(20),
                                         .with_stderr = true,
                                         .max_output = most_dump});
    if (result.succeeded() && !result.out.empty()) {
      stack.threads = parse_py_spy(result.out, stack.pid);
      return true;
    }
    text = replace_all(result.out, "\n", " ");
  } catch (const CannotStart& error) {
    text = error.what();
  }
  stack.why = "py-spy failed: " + wire::to_line(text);
  return false;
}

bool StackReader::ask_by_signal(wire::ProcessStack& stack, const Path& file) const {
  using std::chrono::milliseconds;
  const Path folder = find_process_folder(host_, stack.pid);
  const auto process = read_process(host_, stack.pid);
  const auto begin = find_size(file);
  const auto fail = [&](std::string_view why) {
    stack.why += text::format(", and {}", why);
    return false;
  };
  if (!process || !begin || !catches_signal(folder) || !has_open(folder, file)) {
    return fail("it was not started with --enable-stacks");
  }
  if (process->state == 'T') {
    return fail("it is stopped and takes no signal");
  }
  if (!send_signal(host_, process->id, faulthandler_signal)) {
    return fail("it takes no signal");
  }
  // The dump is complete if the file has not grown since the last look.
  std::uint64_t last = *begin;
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    const RegularFile output(file);
    if (output.size() > *begin && output.size() == last) {
      stack.threads = parse_faulthandler(read_from(output, *begin));
      return true;
    }
    last = output.size();
  }
  return fail("it did not answer the signal within 3 s");
}

void StackReader::read_kernel(wire::ProcessStack& stack) const {
  const Path folder = find_process_folder(host_, stack.pid) / "task";
  for (const std::string& thread : list_names(folder)) {
    if (stack.kernel.size() == most_threads) {
      stack.kernel.emplace_back("… and more threads");
      break;
    }
    const Path task = folder / thread;
    std::string line = text::format("thread {} ({}): state {}", thread, read_first_line(task / "comm"),
                                    read_status_line(task, "State"));
    const std::string function = read_first_line(task / "wchan");
    if (!function.empty() && function != "0") {
      line += ", waits in " + function;
    }
    const std::string call = read_first_line(task / "syscall");
    const std::string number = call.substr(0, call.find(' '));
    if (!number.empty() && number != "running" && number != "-1") {
      line += ", system call " + number;
    }
    stack.kernel.push_back(wire::to_line(line, 500));
  }
}

}  // namespace remote::agent
