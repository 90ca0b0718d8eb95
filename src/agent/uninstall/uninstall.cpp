#include "agent/uninstall/uninstall.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/unfinished.hpp"
#include "agent/lease/list_leases.hpp"
#include "agent/serve/output.hpp"
#include "agent/tree/trees.hpp"
#include "agent/uninstall/remove_programs.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_program = std::size_t{1} << 30U;  // a test program with sanitizers has 100 MB

// Replaces this process with the same program, which then runs without its file. Returns only on failure.
void continue_from_memory(const Host& host, std::vector<std::string> words) {
  const auto program = read_file(host.system("/proc/self/exe"), longest_program);
  // MFD_CLOEXEC, with and without MFD_EXEC, which old kernels do not support and newer ones may require.
  for (const unsigned flags : {0x11U, 1U}) {
    const Descriptor memory(static_cast<int>(::syscall(SYS_memfd_create, "remote-agent", flags)));
    if (memory && program && program->size() < longest_program && write_whole(memory.get(), *program)) {
      std::vector<char*> arguments = pointers_to(words);
      ::execve(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), arguments.data(), ::environ);
    }
  }
}

KeepReasons prepare_removal(const Host& host, const wire::UninstallRequest& request) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  try {
    list_leases(host, {});        // removes this user's old files
  } catch (const CannotStart&) {  // they are reported as leftovers
  }
  drop_trees(host, folder);
  const std::vector<std::string> trees = list_names(folder.jobs / ".trees");
  const bool has_unmoved =
      std::ranges::any_of(trees, [](const std::string& name) { return name.ends_with(".open"); });
  return {.trees = has_unmoved ? std::optional(wire::LeftReason::unmoved) : std::nullopt};
}

}  // namespace

wire::UninstallReply uninstall(const Host& host, const wire::UninstallRequest& request) {
  if (host.home.empty()) {
    throw std::runtime_error("the account has no home directory");
  }
  UnfinishedWork unfinished = find_unfinished(host, request.place);
  if (!unfinished.running.empty()) {
    return {.running = std::move(unfinished.running)};
  }
  KeepReasons reasons;
  if (!unfinished.jobs.empty()) {
    reasons.programs = reasons.trees = wire::LeftReason::unfinished;
  } else if (!request.dry_run) {
    reasons = prepare_removal(host, request);
  }
  return remove_programs(host, request, reasons);
}

void answer_uninstall(const Host& host, const wire::UninstallRequest& request, Stream& stream) {
  if (!request.dry_run) {
    std::vector<std::string> words{"remote-agent",
                                   "uninstall",
                                   std::to_string(stream.id()),
                                   request.place.project,
                                   request.place.jobs_folder,
                                   request.agent_folder};
    words.insert(words.end(), request.shared.begin(), request.shared.end());
    continue_from_memory(host, std::move(words));
  }
  stream.send(uninstall(host.without_cancel(), request));
}

int run_uninstall(int count, char** words) {
  const auto id = parse_number<std::uint32_t>(words[0]);
  if (!id || count < 4) {
    return 2;
  }
  Output output(STDOUT_FILENO);
  try {
    const wire::UninstallRequest request{
        .place = {words[1], words[2]}, .agent_folder = words[3], .shared = {words + 4, words + count}};
    output.send_message(*id, wire::Reply(uninstall(Host::of_this_process(), request)));
  } catch (const std::exception& error) {
    output.send_message(*id, wire::Reply(wire::Refusal{wire::to_line(error.what(), 1000)}));
  }
  output.send(wire::FrameKind::end, *id);
  return 0;
}

}  // namespace remote::agent
