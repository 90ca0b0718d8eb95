#include "agent/facts/facts.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/facts/activation.hpp"
#include "agent/facts/code.hpp"
#include "agent/facts/disks.hpp"
#include "agent/facts/environment.hpp"
#include "agent/facts/logind.hpp"
#include "agent/facts/machine.hpp"
#include "agent/facts/network.hpp"
#include "agent/facts/others.hpp"
#include "agent/facts/ports.hpp"
#include "agent/facts/project.hpp"
#include "agent/gpus/gpus.hpp"
#include "agent/host/background.hpp"
#include "agent/host/path.hpp"
#include "agent/host/variables.hpp"
#include "agent/lease/lease_files.hpp"
#include "agent/provision/python_place.hpp"
#include "agent/provision/source.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds disk_limit{3};

// Facts read from disks, which may hang.
struct OnDisk {
  std::vector<DiskFacts> disks{};
  ServerFacts project{};  // facts about its folders
  bool has_old_packages = false;
};

// If an environment made by `remote` lacks the packages' stamp, this project's packages are not installed in
// it.
bool has_old_packages(const Host& host, const wire::FactsRequest& request) {
  const wire::PackagesStamp& wanted = *request.packages;
  const wire::ManagedPython python{.project = request.project,
                                   .scripts = wanted.scripts,
                                   .project_key = wanted.project_key,
                                   .folder = request.environment,
                                   .other_folder = wanted.other_folder,
                                   .conda = wanted.conda,
                                   .setup_digest = "",
                                   .packages_digest = wanted.digest,
                                   .packages_places = wanted.places};
  const PythonPlace place(host, python);
  return exists(place.packages_stamp()) ? !has_stamp(place.packages_stamp(), place.packages_digest(host))
                                        : exists(place.setup_stamp());
}

OnDisk look_at_disks(const Host& host, const wire::FactsRequest& request) {
  OnDisk found;
  found.disks = read_disks(host, request);
  const Path project = host.expand(request.project);
  if (request.jobs) {
    check_jobs_folder(project, *request.jobs, found.project);
  }
  if (request.packages) {
    found.has_old_packages = has_old_packages(host, request);
  }
  if (request.open) {
    found.project.open_path = find_open_path(host, project, *request.open);
    try_folder(project, found.project);
  }
  return found;
}

// Returns the result of `work`; nullopt if it takes longer than the limit. Its thread then continues, so
// `work` may use only its own data. Rethrows exceptions of `work`.
std::optional<OnDisk> wait_for(std::chrono::seconds limit, const std::function<OnDisk()>& work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable has_ended;
    bool is_done = false;
    OnDisk found;
    std::exception_ptr error;
  };
  const auto shared = std::make_shared<Shared>();
  const std::function<void()> share_result = [shared, work] {
    OnDisk found;
    std::exception_ptr error;
    try {
      found = work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(shared->mutex);
    shared->found = std::move(found);
    shared->error = error;
    shared->is_done = true;
    shared->has_ended.notify_all();
  };
  try {
    std::thread(share_result).detach();
  } catch (const std::system_error&) {
    share_result();
  }
  std::unique_lock lock(shared->mutex);
  if (!shared->has_ended.wait_for(lock, limit, [&] { return shared->is_done; })) {
    return std::nullopt;
  }
  if (shared->error) {
    std::rethrow_exception(shared->error);
  }
  return std::move(shared->found);
}

// Jobs run after the prologue and in the Python environment. Either may hide GPUs, or add the program that
// lists them to PATH.
void enter_environment(const Host& host, const wire::FactsRequest& request, const GpuEnvironment& entered,
                       GpuFacts& gpus) {
  if (gpus.tools.empty()) {
    Host inside = host;
    inside.environment["PATH"] = entered.path;
    if (has_gpu_program(inside)) {
      gpus = read_gpus(inside, *request.gpus);
    }
  }
  const std::vector<VisibleDevices> before = std::exchange(gpus.visible, {});
  for (const auto& [variable, value] : entered.visible) {
    if (std::ranges::find(request.variables, wire::Variable{variable, value}) != request.variables.end()) {
      continue;  // set by the client itself
    }
    const auto same = std::ranges::find(before, variable, &VisibleDevices::variable);
    gpus.visible.push_back(
        {.variable = variable, .value = value, .by_prologue = same == before.end() || same->value != value});
  }
}

}  // namespace

wire::FactsReply collect_facts(const Host& host, const wire::FactsRequest& request, std::string_view files) {
  wire::FactsReply reply;
  if (request.clock) {
    reply.clock = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
  }
  // Each thread fills different members of the reply. At the user's process limit, wait() does the work
  // itself.
  BackgroundWork gpus([&] {
    if (request.gpus) {
      reply.facts.gpus = read_gpus(host, *request.gpus);
    }
  });
  Host host_of_jobs = add_variables(host, request.variables);
  std::optional<Activation> entered;
  BackgroundWork environment([&] { entered = read_environment(host_of_jobs, request, reply); });
  if (request.machine) {
    read_machine(host, reply.facts);
  }
  if (request.load) {
    read_load(host, reply);
    reply.has_leases = has_lease_files(host);
  }
  if (request.logind) {
    read_logind(host, reply.facts);
  }
  if (request.route_to) {
    reply.route = find_route(host, *request.route_to);
  }
  if (request.port) {
    reply.port = look_at_port(host, *request.port);
  }
  if (!request.disks.empty() || request.jobs || request.open || request.packages) {
    if (std::ranges::find(request.disks, wire::DiskPlace::tmp) != request.disks.end()) {
      environment.wait();  // the prologue may set TMPDIR
      if (entered && entered->temporary) {
        host_of_jobs.environment["TMPDIR"] = *entered->temporary;
      }
    }
    const auto look = [host = host_of_jobs, request] { return look_at_disks(host, request); };
    if (auto found = wait_for(disk_limit + std::chrono::seconds(request.open ? 3 : 0), look)) {
      reply.facts.disks = std::move(found->disks);
      reply.facts.jobs_closed = found->project.jobs_closed;
      reply.facts.sick = found->project.sick;
      reply.facts.open_path = found->project.open_path;
      reply.facts.flaw = found->project.flaw;
      reply.facts.flaw_text = found->project.flaw_text;
      reply.has_old_packages = found->has_old_packages;
    } else {
      reply.disks_hang = true;
    }
  }
  if (request.others && !reply.disks_hang) {
    RunningJobs running = find_running_jobs(host, host.expand(request.project));
    reply.others = std::move(running.others);
    reply.running = std::move(running.here);
  }
  if (request.code) {
    reply.code = compare_files(host.expand(request.project), files);
  }
  if (request.scripts) {
    reply.source = read_source(host.expand(*request.scripts));
  }
  reply.lacks_environment = !request.environments.empty() &&
                            std::ranges::none_of(request.environments, [&](const std::string& folder) {
                              return is_program(host.expand(folder) / "bin/python");
                            });
  gpus.wait();
  environment.wait();
  std::optional<GpuEnvironment> of_jobs;
  if (entered) {
    of_jobs = entered->gpus;
  } else if (request.gpus && reply.facts.gpus.tools.empty() && !request.activate.empty()) {
    of_jobs = find_gpu_environment(host_of_jobs, request.activate);
  }
  if (request.gpus && of_jobs) {
    enter_environment(host, request, *of_jobs, reply.facts.gpus);
  }
  for (const GpuTool& tool : reply.facts.gpus.tools) {
    if (tool.vendor == GpuVendor::nvidia) {
      reply.facts.programs.insert("nvidia-smi");
      if (reply.facts.driver.empty()) {
        reply.facts.driver = tool.driver_version;
      }
    }
  }
  return reply;
}

}  // namespace remote::agent
