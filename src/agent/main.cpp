#include <csignal>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>

#include <unistd.h>

#include "agent/authorize/authorize.hpp"
#include "agent/container/check_container.hpp"
#include "agent/facts/facts.hpp"
#include "agent/facts/listeners.hpp"
#include "agent/host/host.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/exec_job.hpp"
#include "agent/job/guard.hpp"
#include "agent/job/init_file_check.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/sick_mark.hpp"
#include "agent/job/web_port.hpp"
#include "agent/launch/supervisor.hpp"
#include "agent/lease/list_leases.hpp"
#include "agent/mpi/programs.hpp"
#include "agent/network/answers.hpp"
#include "agent/notify/notify.hpp"
#include "agent/outputs/outputs.hpp"
#include "agent/peers/peers.hpp"
#include "agent/provision/provision.hpp"
#include "agent/run/exec_run.hpp"
#include "agent/serve/serve.hpp"
#include "agent/serve/versions.hpp"
#include "agent/slurm/slurm_job.hpp"
#include "agent/slurm/tools.hpp"
#include "agent/stacks/stacks.hpp"
#include "agent/stacks/why.hpp"
#include "agent/sweep/sweep.hpp"
#include "agent/tree/make_tree.hpp"
#include "agent/tree/trees.hpp"
#include "agent/uninstall/uninstall.hpp"
#include "wire/cbor.hpp"

namespace remote::agent {
namespace {

// The exit status of `try`. It is not 0, because a shell exits with 0 for an empty file
// (server/agent_command.cpp).
constexpr int works = 42;
constexpr int wrong_usage = 2;

// A client sends the size of its first request in a separate line before it, for a shell that may have to
// skip the request (server/agent_command.cpp).
void skip_first_line() {
  char c = 0;
  while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
  }
}

struct Answerer {
  const Host& host;
  const std::string& data;
  Stream& stream;

  void operator()(const wire::FactsRequest& request) const {
    stream.send(collect_facts(host, request, data));
  }
  void operator()(const wire::StateRequest& request) const { answer_state(host, request, stream); }
  void operator()(const wire::WorkersRequest& request) const { stream.send(read_workers(host, request)); }
  void operator()(const wire::LinesRequest& request) const { stream.send(read_last_lines(host, request)); }
  void operator()(const wire::StopRequest& request) const { answer_stop(host, request, stream); }
  void operator()(const wire::CleanRequest& request) const { stream.send(clean(host, request)); }
  void operator()(const wire::KeepProgramRequest& request) const {
    stream.send(keep_program(host, request, data));
  }
  void operator()(const wire::StartJobsRequest&) const {
    stream.send(start_jobs(host, decode_data<wire::JobsToStart>()));
  }
  void operator()(const wire::BeginSweepRequest&) const {
    stream.send(begin_sweep(host, decode_data<wire::SweepToBegin>()));
  }
  void operator()(const wire::SweepRequest& request) const { answer_sweep(host, request, stream); }
  void operator()(const wire::MakeTreeRequest& request) const { stream.send(make_tree(host, request, data)); }
  void operator()(const wire::UninstallRequest& request) const { answer_uninstall(host, request, stream); }
  void operator()(const wire::LeasesRequest& request) const { stream.send(list_leases(host, request)); }
  void operator()(const wire::StacksRequest& request) const { answer_stacks(host, request, stream); }
  void operator()(const wire::WhyRequest& request) const { answer_why(host, request, stream); }
  void operator()(const wire::KeptWhyRequest& request) const { answer_kept_why(host, request, stream); }
  void operator()(const wire::ListenRequest& request) const { answer_listen(host, request, stream); }
  void operator()(const wire::ReachRequest& request) const { answer_reach(host, request, stream); }
  void operator()(const wire::SendRequest& request) const { answer_send(host, request, stream); }
  void operator()(const wire::ContainerRequest& request) const {
    stream.send(check_container(host, request));
  }
  void operator()(const wire::SlurmProgramsRequest&) const { stream.send(find_slurm_programs(host)); }
  void operator()(const wire::ListenersRequest& request) const { stream.send(list_listeners(host, request)); }
  void operator()(const wire::WebPortRequest& request) const { stream.send(find_web_port(host, request)); }
  void operator()(const wire::ClearSickMarkRequest& request) const {
    stream.send(clear_sick_mark(host, request));
  }
  void operator()(const wire::PathsRequest& request) const { stream.send(find_path_kinds(host, request)); }
  void operator()(const wire::MatchesRequest& request) const {
    stream.send(find_matching_names(host, request));
  }
  void operator()(const wire::WrittenRequest& request) const { answer_written(host, request, stream); }
  void operator()(const wire::InitFileRequest& request) const { stream.send(check_init_file(host, request)); }
  void operator()(const wire::PullProjectRequest& request) const {
    answer_pull_project(host, request, data, stream);
  }
  void operator()(const wire::CompareFilesRequest& request) const {
    stream.send(compare_with_digests(host, request, data, stream));
  }
  void operator()(const wire::PreparedRequest& request) const { stream.send(find_prepared(host, request)); }
  void operator()(const wire::RecordSourceRequest& request) const {
    stream.send(record_source(host, request));
  }
  void operator()(const wire::RemovePartialsRequest& request) const {
    stream.send(remove_partials(host, request));
  }
  void operator()(const wire::ProvisionRequest&) const {
    answer_provision(host, decode_data<wire::Provisioning>(), stream);
  }
  void operator()(const wire::AuthorizeRequest& request) const { stream.send(authorize_key(host, request)); }
  void operator()(const wire::TryNotifyRequest&) const {
    stream.send(try_notify(host, decode_data<wire::NotificationToTry>()));
  }
  void operator()(const wire::FollowRequest&) const {}  // these two are handled by serve()
  void operator()(const wire::RunRequest&) const {}

  template <typename Message>
  Message decode_data() const {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(data.data()), data.size());
    return wire::decode<Message>(bytes);
  }
};

int serve_client() {
  std::signal(SIGPIPE, SIG_IGN);
  write_whole(STDOUT_FILENO, "\n@remote-agent here\n");
  skip_first_line();
  const Host host = Host::of_this_process();
  const auto answer = [&](const wire::Request& request, const std::string& data, Stream& stream) {
    std::visit(Answerer{host, data, stream}, request);
  };
  const Path program = find_own_program();
  return serve(STDIN_FILENO, STDOUT_FILENO, exists(program) ? program.string() : "", host, answer);
}

}  // namespace

int run(int count, char** arguments) {
  const std::string_view command = count > 1 ? arguments[1] : "";
  const std::string_view option = count > 2 ? arguments[2] : "";
  // Links to the agent in a job's folder have such names.
  constexpr std::string_view mpi_link = "remote-mpi-";
  if (const std::string name = Path(arguments[0]).filename(); name.starts_with(mpi_link)) {
    return run_mpi_program(name.substr(mpi_link.size()), count - 1, arguments + 1);
  }
  if (command.starts_with("mpi-")) {
    return run_mpi_program(command.substr(4), count - 2, arguments + 2);
  }
  if (command == "try" && count == 2) {
    return works;
  }
  if (command == "serve" && count <= 3) {
    if (option == "--remove-folder") {
      remove_own_folder();
    } else if (option == "--remove-old") {
      remove_old_versions();
    }
    return serve_client();
  }
  if (command == "stacks") {
    return run_stacks(count - 2, arguments + 2);
  }
  if (command == "why") {
    return run_why(count - 2, arguments + 2);
  }
  if (command == "stop" && count >= 3) {
    return run_stop(count - 2, arguments + 2);
  }
  if (command == "supervise" && count >= 5) {
    return run_supervise(count - 2, arguments + 2);
  }
  if (command == "supervise-launch" && count == 5) {
    return run_supervise_launch(count - 2, arguments + 2);
  }
  if (command == "notify" && count == 5) {
    return run_notify(count - 2, arguments + 2);
  }
  if (command == "supervise-sweep" && count == 5) {
    return run_supervise_sweep(count - 2, arguments + 2);
  }
  if (command == "land-trees" && count == 3) {
    return run_land_trees(arguments[2]);
  }
  if (command == "uninstall" && count >= 6) {
    return run_uninstall(count - 2, arguments + 2);
  }
  if (command == "exec-job" && count >= 4) {
    return run_exec_job(count - 2, arguments + 2);
  }
  if (command == "exec-run" && count >= 3) {
    return run_exec_run(count - 2, arguments + 2);
  }
  if (command == "slurm-job" && count >= 3) {
    return run_slurm_job(count - 2, arguments + 2);
  }
  write_whole(
      STDERR_FILENO,
      "usage: remote-agent try | serve [--remove-folder | --remove-old] |\n"
      "       stop JOBS_FOLDER [SIGNAL GRACE_S BY ID...] | supervise JOBS_FOLDER UMASK ID... |\n"
      "       supervise-launch JOBS_FOLDER PROGRAM_FOLDER JOB | exec-job engine|inside JOB_FOLDER OUT "
      "ERR NOTE ... |\n"
      "       exec-job wait JOB_FOLDER |\n"
      "       exec-run begin|read | exec-run entered STATUS PROLOGUE_STATUS |\n"
      "       supervise-sweep JOBS_FOLDER PROGRAM_FOLDER LAUNCH | land-trees JOBS_FOLDER |\n"
      "       notify end|hang JOB_FOLDER PROGRAM_FOLDER |\n"
      "       uninstall STREAM PROJECT JOBS_FOLDER AGENT_FOLDER SHARED_FOLDER... |\n"
      "       slurm-job one | slurm-job ranks|agents COUNT PORT GRACE_S |\n"
      "       slurm-job rank KIND COUNT GRACE_S |\n"
      "       mpi-order JOB_FOLDER WORD... | mpi-hold |\n"
      "       stacks JOBS_FOLDER ID | why JOBS_FOLDER PROGRAM_FOLDER SECONDS ID...\n");
  return wrong_usage;
}

}  // namespace remote::agent

int main(int count, char** arguments) {
  // Do not return, because a thread may hang on a disk.
  _exit(remote::agent::run(count, arguments));
}
