#include "agent/slurm/submit.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "agent/job/job_files.hpp"
#include "agent/job/start_jobs.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/slurm/tools.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view no_sbatch =
    "there is no sbatch on this server: is it the login node of a Slurm cluster?";
constexpr std::size_t max_batch_size = std::size_t{16} << 20U;  // an array has a line for each of its jobs

// A job of the batch script.
struct Task {
  std::string id;
  std::string suffix{};  // the suffix of its Slurm number: "_3" in an array
};

// The jobs of an array, from the lines "  NUMBER) cd ID ;;" of its batch script; empty if it is not an array.
std::vector<Task> parse_array(std::string_view batch) {
  std::vector<Task> tasks;
  for (const std::string& line : split(batch, '\n')) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() != 4 || !words[0].ends_with(')') || words[1] != "cd" || words[3] != ";;") {
      continue;
    }
    const auto number = parse_number<unsigned>(std::string_view(words[0]).substr(0, words[0].size() - 1));
    if (number && wire::is_id(words[2])) {
      tasks.push_back({words[2], text::format("_{}", *number)});
    }
  }
  return tasks;
}

// The options of sbatch that make a job wait for others.
struct Dependencies {
  std::vector<std::string> options{};
  std::string trouble{};  // why the job could never start; "" if it can
};

Dependencies find_dependencies(const Host& host, const JobsFolder& folder, const std::string& id) {
  std::string numbers;
  const std::string after = read_job_file(folder.jobs / id / "after", max_batch_size).value_or("");
  for (const std::string& line : split_words(after)) {
    const auto job = read_record(host, folder, line);
    if (!job) {
      return {.trouble =
                  text::format("the job that it depends on no longer exists ({})", wire::to_line(line))};
    }
    if (job->end && job->end->how.succeeded()) {
      continue;  // Slurm forgets jobs after a while
    }
    if (job->has_result()) {
      const wire::ProcessEnd how = job->end ? job->end->how : wire::ProcessEnd();
      const std::string_view kind = !job->end ? "never" : how.signal != 0 ? "signal" : "exit";
      return {.trouble = text::format("the job that it depends on has not succeeded ({} {})", kind,
                                      how.signal != 0 ? how.signal : how.code)};
    }
    const std::string number = job->backend == "slurm" ? read_slurm_number(job->folder) : "";
    if (number.empty()) {
      return {.trouble = "the job that it depends on is not a Slurm job"};
    }
    numbers += ":" + number;
  }
  if (numbers.empty()) {
    return {};
  }
  return {.options = {"--dependency=afterok" + numbers, "--kill-on-invalid-dep=yes"}};
}

class Submission {
 public:
  Submission(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids)
      : host_(host.without_cancel()), folder_(folder), pending_(ids.begin(), ids.end()) {}

  void submit(const std::string& id, std::string_view batch) {
    tasks_ = parse_array(batch);
    const bool is_array = !tasks_.empty();
    if (!is_array) {
      tasks_.push_back({.id = id});
    }
    if (!tools_.find() || !tools_.has("sbatch")) {
      fail(std::string(no_sbatch));
      return;
    }
    const Dependencies dependencies = find_dependencies(host_, folder_, id);
    if (!dependencies.trouble.empty()) {
      fail(dependencies.trouble);
      return;
    }
    std::vector<std::string> argv{"sbatch", "--parsable", "--job-name=remote-" + id};
    argv.insert(argv.end(), dependencies.options.begin(), dependencies.options.end());
    // Output paths are relative to the folder that sbatch runs in.
    argv.push_back(is_array ? id + "/batch.sh" : "batch.sh");
    const RunResult result = tools_.call_as_job(argv, is_array ? folder_.jobs : folder_.jobs / id, 40s);
    const std::string line = find_last_line(result.out);
    const std::string number = result.succeeded() ? line.substr(0, line.find(';')) : "";
    if (parse_number<std::uint64_t>(number)) {
      finish(number);
      return;
    }
    // Slurm may have accepted the job although its answer was lost.
    queue_.ask(0ms);
    if (const SlurmRow* row = queue_.find(id, "")) {
      finish(row->number.substr(0, row->number.find('_')));
      return;
    }
    const std::string reason = line.empty() ? "it gave no number" : line;
    fail(reason.starts_with("sbatch: ") ? reason : "sbatch: " + reason);
  }

  void fail_job(const std::string& id, const std::string& reason) {
    if (pending_.erase(id) > 0) {
      replies_.push_back(fail_start(host_, folder_, id, reason));
    }
  }

  std::vector<wire::StartedJob> take_replies() { return std::move(replies_); }

 private:
  void fail(const std::string& reason) {
    for (const Task& task : tasks_) {
      fail_job(task.id, reason);
    }
  }

  // Call this when Slurm has assigned this number to the batch script.
  void finish(const std::string& batch_number) {
    for (const auto& [id, suffix] : tasks_) {
      if (pending_.erase(id) == 0) {
        continue;
      }
      const std::string number = batch_number + suffix;
      put_file(folder_.jobs / id / "slurm", number + "\n");  // without it, the job is found by its name
      replies_.push_back({.id = id, .outcome = wire::StartOutcome::queued, .reason = "Slurm job " + number});
    }
  }

  Host host_;
  const JobsFolder& folder_;
  SlurmTools tools_{host_};
  SlurmQueue queue_{host_, tools_};
  std::vector<Task> tasks_{};  // of the current batch script
  std::set<std::string> pending_;
  std::vector<wire::StartedJob> replies_{};
};

}  // namespace

std::vector<wire::StartedJob> submit_to_slurm(const Host& host, const JobsFolder& folder,
                                              const std::vector<std::string>& ids) {
  Submission submission(host, folder, ids);
  for (const std::string& id : ids) {
    if (const auto batch = read_job_file(folder.jobs / id / "batch.sh", max_batch_size)) {
      submission.submit(id, *batch);
    }
  }
  for (const std::string& id : ids) {
    submission.fail_job(id, "there is no batch script for it");
  }
  return submission.take_replies();
}

}  // namespace remote::agent
