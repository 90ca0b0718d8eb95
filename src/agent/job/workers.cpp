#include "agent/job/workers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/host/processes.hpp"
#include "agent/job/answers.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/last_words.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/record.hpp"
#include "base/strings.hpp"

// Reads the failed ranks of a job. They are recorded by sitecustomize.py and torch_agent.py for torchrun, by
// agent/mpi/rank.cpp for mpirun, and by slurm-job for Slurm. The job can also write these files, so they are
// untrusted.

namespace remote::agent {
namespace {

constexpr std::size_t most_worker_text = 65536;
// All lines of the reply must fit into one message.
constexpr std::size_t most_answer_text = std::size_t{700} << 10U;
constexpr std::size_t most_workers = 10'000;
constexpr long long largest_rank = 1 << 30;

// Parses a number without leading zeros.
std::optional<int> parse_rank(std::string_view text) {
  const auto rank = parse_number<long long>(text);
  const bool is_plain = rank && *rank >= 0 && *rank <= largest_rank && (text.size() == 1 || text[0] != '0');
  return is_plain && text[0] != '-' ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

// Parses the first line of a failure record: milliseconds.
std::optional<wire::Moment> parse_raised(std::string_view text) {
  const auto ms = text.size() <= 13 && !text.starts_with('-') ? parse_number<long long>(text) : std::nullopt;
  return ms ? std::optional(wire::Moment(*ms)) : std::nullopt;
}

class Workers {
 public:
  Workers(const Path& job_folder, int lines)
      : folder_(job_folder),
        failures_(job_folder / "failures"),
        ranks_(job_folder / "ranks"),
        lines_(static_cast<std::size_t>(lines)) {}

  std::vector<wire::FailedWorker> read() {
    for (const std::string& name : list_names(failures_)) {
      if (name.starts_with("rank.")) {
        read_raised(name);
      }
    }
    for (const WorkerEnd& end : read_worker_ends(folder_)) {
      read_end(end);
    }
    std::vector<wire::FailedWorker> workers;
    for (auto& [rank, worker] : found_) {
      workers.push_back(std::move(worker));
    }
    return workers;
  }

 private:
  wire::FailedWorker* add(int rank) {
    if (found_.size() == most_workers && !found_.contains(rank)) {
      return nullptr;
    }
    wire::FailedWorker& worker = found_[rank];
    worker.rank = rank;
    return &worker;
  }

  // Reads a file that contains a time, followed by a traceback.
  void read_raised(const std::string& name) {
    const Path path = failures_ / name;
    const std::string head = read_job_file(path, 64).value_or("");
    const std::size_t head_end = head.find('\n');
    const auto raised_at = parse_raised(std::string_view(head).substr(0, head_end));
    const auto rank = parse_rank(std::string_view(name).substr(5));
    wire::FailedWorker* worker = rank && raised_at && head_end != std::string::npos ? add(*rank) : nullptr;
    if (worker == nullptr) {
      return;
    }
    const std::string text = read_end_of_file(path, most_worker_text + head_end, Links::refuse).value_or("");
    std::string_view traceback = text;
    if (traceback.starts_with(std::string_view(head).substr(0, head_end + 1))) {
      traceback.remove_prefix(head_end + 1);
    }
    worker->raised_at = raised_at;
    worker->after_peer = blames_peer(text);
    set_lines(*worker, traceback);
  }

  // Only the first line of each rank counts.
  void read_end(const WorkerEnd& end) {
    wire::FailedWorker* worker = add(end.rank);
    if (worker == nullptr || worker->end) {
      return;
    }
    worker->end = end.end;
    const std::string number = std::to_string(end.rank);
    if (const Path raised = failures_ / ("rank." + number); is_file(raised)) {
      worker->after_peer = file_blames_peer(raised, Links::refuse);  // read_raised() has set the lines
      return;
    }
    if (!is_own_folder(ranks_)) {
      return;
    }
    const std::string text =
        read_end_of_file(ranks_ / (number + ".err"), most_worker_text, Links::refuse).value_or("");
    worker->after_peer = blames_peer(text);
    set_lines(*worker, text);
  }

  void set_lines(wire::FailedWorker& worker, std::string_view text) {
    text = text.substr(text.size() - std::min(text.size(), most_worker_text));
    std::size_t bytes = 0;
    worker.last_lines.clear();
    for (const std::string_view line : find_lines_of_last_attempt(text, lines_)) {
      worker.last_lines.emplace_back(line.substr(0, longest_output_line));
      bytes += worker.last_lines.back().size() + 4;
    }
    if (text_size_ + bytes > most_answer_text) {
      worker.last_lines.clear();
      return;
    }
    text_size_ += bytes;
  }

  Path folder_;
  Path failures_;
  Path ranks_;
  std::size_t lines_;
  std::size_t text_size_ = 0;
  std::map<int, wire::FailedWorker> found_;
};

std::optional<WorkerEnd> parse_worker_end(std::string_view line) {
  line = trim(line);
  const std::size_t blank = line.find(' ');
  const auto rank = parse_rank(line.substr(0, blank));
  if (!rank || blank == std::string_view::npos) {
    return std::nullopt;
  }
  const auto end = parse_end(line.substr(blank + 1));
  return end && !end->never_started && end->end.at ? std::optional(WorkerEnd{*rank, end->end}) : std::nullopt;
}

}  // namespace

std::vector<WorkerEnd> read_worker_ends(const Path& job_folder) {
  std::vector<WorkerEnd> ends;
  const std::string text = read_job_file(job_folder / "failures/agent", most_worker_text).value_or("");
  std::string_view rest = text;
  for (std::size_t at = rest.find('\n'); at != std::string_view::npos; at = rest.find('\n')) {
    if (const auto end = parse_worker_end(rest.substr(0, at))) {
      ends.push_back(*end);
    }
    rest.remove_prefix(at + 1);
  }
  return ends;
}

wire::WorkersReply read_workers(const Host& host, const wire::WorkersRequest& request) {
  wire::WorkersReply reply{.now = read_wall_clock()};
  const Path folder = JobsFolder::of(host, request.place).jobs / request.id;
  reply.workers = Workers(folder, request.lines).read();
  return reply;
}

}  // namespace remote::agent
