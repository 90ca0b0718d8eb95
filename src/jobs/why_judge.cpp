// Conclusions from two samples of a launch's processes. Makes no requests.

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "base/strings.hpp"
#include "jobs/why.hpp"
#include "jobs/why_frames.hpp"

namespace remote {

std::string_view to_string(RankDoing doing) {
  constexpr std::array names{"computing",  "collective", "meeting", "peer",   "data",
                             "lock",       "sleeping",   "network", "event",  "pipe_full",
                             "pipe_empty", "child",      "stopped", "traced", "storage",
                             "kernel",     "throttled",  "waiting", "ended",  "unreachable"};
  return names.at(static_cast<std::size_t>(doing));
}

std::string_view to_string(WhyKind kind) {
  constexpr std::array names{"moving", "slow",       "held_up",  "ended",  "mismatch",
                             "link",   "same_place", "standing", "unknown"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace remote

namespace remote::jobs {
namespace {

constexpr double busy = 0.2;         // processor time, used or waited for: above this, a rank is computing
constexpr double stir = 0.02;        // below this, it is waiting
constexpr std::uint64_t few = 3;     // clock ticks, which answering this request may have used
constexpr double slow_factor = 1.5;  // a rank is slow if it is slower than all others by this factor
constexpr double full_share = 0.7;   // and busy for at least this share of the time

bool waits_for_others(RankDoing doing) {
  return doing == RankDoing::collective || doing == RankDoing::meeting || doing == RankDoing::peer;
}

// The ticks of a process and all its descendants in one sample.
std::uint64_t ticks_of_family(const WhyAnswer::Look& look, int pid) {
  std::uint64_t ticks = 0;
  for (const auto& [one, state] : look.processes) {
    int ancestor = one;
    for (int depth = 0; depth < 32 && ancestor != pid; ++depth) {
      const auto above = look.processes.find(ancestor);
      ancestor = above == look.processes.end() ? 0 : above->second.parent;
    }
    ticks += ancestor == pid ? state.ticks : 0;
  }
  return ticks;
}

std::uint64_t growth(std::uint64_t from, std::uint64_t to) {
  return to > from ? to - from : 0;  // when a child exits, its ticks are lost
}

// The process of a job that is not Python: the one below the shells, which wait for it.
int leaf_below(const WhyAnswer::Look& look, int pid) {
  for (int depth = 0; depth < 32; ++depth) {
    const auto child =
        std::ranges::find_if(look.processes, [&](const auto& one) { return one.second.parent == pid; });
    if (child == look.processes.end()) {
      break;
    }
    pid = child->first;
  }
  return pid;
}

const wire::ProcessStack* stack_of(const WhyAnswer::Look& look, int pid) {
  const auto found = std::ranges::find(look.stacks, pid, &wire::ProcessStack::pid);
  return found == look.stacks.end() ? nullptr : &*found;
}

Place place_in(const WhyAnswer::Look& look, int pid) {
  const wire::ProcessStack* stack = stack_of(look, pid);
  return stack == nullptr || stack->threads.empty() ? Place() : place_of(stack->threads.front().frames);
}

bool has(const std::string& text, const std::vector<std::string_view>& parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

// Compares the beginning of the kernel function's name, because Lustre's "ll_" is also contained in
// poll_schedule_timeout.
bool is_file_system(std::string_view kernel) {
  kernel.remove_prefix(std::min(kernel.find_first_not_of('_'), kernel.size()));
  // Network file systems, the page cache and disks, then local file systems.
  constexpr std::string_view starts[] = {"nfs",
                                         "rpc_wait",
                                         "fuse",
                                         "request_wait_answer",
                                         "cifs",
                                         "smb",
                                         "ceph",
                                         "lustre",
                                         "ll_",
                                         "cl_sync_io",
                                         "ptlrpc_",
                                         "ldlm_",
                                         "osc_",
                                         "p9_client",
                                         "afs_",
                                         "gfs2_",
                                         "ocfs2_",
                                         "cxiWaitEvent",
                                         "gpfs",
                                         "fhgfs",
                                         "beegfs",
                                         "folio_",
                                         "wait_on_page",
                                         "io_schedule",
                                         "balance_dirty",
                                         "bit_wait_io",
                                         "wait_on_buffer",
                                         "lock_page",
                                         "lock_buffer",
                                         "sleep_on_page",
                                         "sleep_on_buffer",
                                         "filemap_",
                                         "blk_",
                                         "blkdev_",
                                         "rq_qos_wait",
                                         "wbt_wait",
                                         "wb_wait",
                                         "submit_bio",
                                         "get_request",
                                         "do_blockdev_direct_IO",
                                         "dio_",
                                         "iomap_",
                                         "d_alloc_parallel",
                                         "d_wait_lookup",
                                         "jbd2_",
                                         "wait_transaction_locked",
                                         "do_get_write_access",
                                         "ext4_",
                                         "xfs_",
                                         "xlog_",
                                         "btrfs_",
                                         "wait_log_commit",
                                         "wait_current_trans",
                                         "zio_wait",
                                         "txg_wait",
                                         "f2fs_",
                                         "ovl_"};
  return std::ranges::any_of(starts, [&](std::string_view start) { return kernel.starts_with(start); });
}

// What the main thread is doing according to the kernel: its state in the second sample, if the first one has
// the same.
RankDoing kernel_doing(const wire::ProcessSample& first, const wire::ProcessSample& second) {
  if (second.state == "T") {
    return RankDoing::stopped;
  }
  if (second.state == "t") {
    return RankDoing::traced;
  }
  if (first.kernel != second.kernel) {
    return RankDoing::waiting;
  }
  const std::string& kernel = second.kernel;
  const bool cannot_be_interrupted = first.state == "D" && second.state == "D";
  if (is_file_system(kernel) || (cannot_be_interrupted && kernel.empty())) {
    return RankDoing::storage;
  }
  if (cannot_be_interrupted) {
    return RankDoing::kernel;
  }
  static const std::vector<std::pair<RankDoing, std::vector<std::string_view>>> rows = {
      {RankDoing::pipe_full, {"pipe_write"}},
      {RankDoing::pipe_empty, {"pipe_read"}},
      {RankDoing::sleeping, {"nanosleep"}},
      {RankDoing::lock, {"futex"}},
      {RankDoing::child, {"do_wait", "kernel_wait"}},
      {RankDoing::network, {"wait_woken", "sk_wait", "inet_", "skb_"}},
      {RankDoing::event, {"poll", "select"}}};
  for (const auto& [doing, parts] : rows) {
    if (has(kernel, parts)) {
      return doing;
    }
  }
  return RankDoing::waiting;
}

// The processor time that it needed, including time when others, or its control group, kept it from the
// processor.
double work_of(const RankLook& rank) {
  return rank.cpu + rank.cpu_wait + rank.throttled;
}

RankDoing doing_of(const RankLook& rank, const wire::ProcessSample& first, const wire::ProcessSample& second,
                   RankDoing of_stack) {
  const RankDoing kernel = kernel_doing(first, second);
  if (kernel == RankDoing::stopped || kernel == RankDoing::traced || kernel == RankDoing::storage ||
      kernel == RankDoing::kernel || kernel == RankDoing::pipe_full) {
    return kernel;
  }
  if (waits_for_others(of_stack)) {
    return of_stack;  // NCCL computes while it waits
  }
  if (rank.throttled >= busy && rank.throttled >= rank.cpu) {
    return RankDoing::throttled;
  }
  if (work_of(rank) >= busy) {
    return RankDoing::computing;
  }
  return of_stack == RankDoing::waiting ? kernel : of_stack;
}

// In DDP, the main thread of a rank waits for autograd's threads, which no stack shows, while these wait for
// the other ranks.
void see_through_backward(const RankLook& rank, Place& place) {
  if (place.in_backward && place.doing == RankDoing::waiting && rank.doing == RankDoing::lock &&
      rank.job.world_size != 1) {
    place.doing = RankDoing::collective;
    place.function = "backward";
  }
}

void add_silence(RankLook& rank, ExactInstant now) {
  if (rank.job.failed_at && ranks_of(rank.job) == 1) {
    rank.silent = std::max(std::chrono::seconds(0),
                           std::chrono::floor<std::chrono::seconds>(now - *rank.job.failed_at));
  }
}

// The collectives that some ranks have entered and others have not, by rank.
using Entered = std::map<int, std::string>;

Entered find_entered(const std::vector<WhyCollective>& collectives) {
  Entered entered;
  for (const WhyCollective& one : collectives) {
    for (const WhyCollective::Call& call : one.calls) {
      for (const int rank : call.ranks) {
        // If all ranks have entered a collective, it may be waiting for the GPU's own work.
        if (one.kind != WhyCollective::Kind::stuck || one.old) {
          entered.emplace(rank, call.function);
        }
      }
    }
  }
  return entered;
}

// With NCCL, a rank does not wait in the call of the collective, but later, for the result on its GPU.
void wait_for_gpu(const Entered& entered, const std::optional<int>& number, Place& place) {
  const auto found = number ? entered.find(*number) : entered.end();
  if (found != entered.end() && place.line > 0 && !waits_for_others(place.doing)) {
    place.doing = RankDoing::collective;
    place.function = found->second;
  }
}

RankLook look_at(const WhySample& sample, const Job& job, int root, const std::optional<int>& number,
                 const Entered& entered, ExactInstant now) {
  const auto& [first, second] = sample.answer.looks;
  const bool polls = !sample.answer.facts.facts.gpus.gpus.empty();
  RankLook rank{.job = job, .rank = number, .pid = root};
  Place before = place_in(first, root);
  Place after = place_in(second, root);
  if (before == after) {
    wait_for_gpu(entered, number, before);
    wait_for_gpu(entered, number, after);
  }
  rank.file = after.file;
  rank.line = after.line;
  const wire::ProcessStack* stack = stack_of(second, root);
  rank.no_stack = stack == nullptr ? "" : stack->why;
  const bool is_python = first.ranks.contains(root);
  rank.pid = is_python ? root : leaf_below(second, root);
  const double seconds = std::max(0.01, (second.at - first.at).count());
  const std::uint64_t ticks = growth(ticks_of_family(first, root), ticks_of_family(second, root));
  rank.cpu = static_cast<double>(ticks) / 100 / seconds;
  if (ticks >= few && is_python && second.ranks.contains(root)) {
    rank.cpu_wait =
        static_cast<double>(growth(first.ranks.at(root).delay_ns, second.ranks.at(root).delay_ns)) / 1e9 /
        seconds;
  }
  const auto throttled_in = [&](const WhyAnswer::Look& look) {
    const auto found = look.ranks.find(root);
    return found == look.ranks.end() ? std::nullopt : found->second.throttled_us;
  };
  if (const auto throttled = throttled_in(first), later = throttled_in(second); throttled && later) {
    rank.throttled = static_cast<double>(growth(*throttled, *later)) / 1e6 / seconds;
  }
  const auto state_in = [&](const WhyAnswer::Look& look) {
    const auto found = look.processes.find(rank.pid);
    return found == look.processes.end() ? wire::ProcessSample() : found->second;
  };
  const wire::ProcessSample from = state_in(first);
  const wire::ProcessSample to = state_in(second);
  rank.kernel = to.kernel;
  rank.doing = doing_of(rank, from, to, after.doing);
  see_through_backward(rank, before);
  see_through_backward(rank, after);
  rank.doing = doing_of(rank, from, to, after.doing);
  rank.function = after.function;
  rank.pipe_fd = to.pipe_fd.value_or(-1);
  rank.pipe_reader = to.pipe_reader.value_or(0);
  const bool wrote = from.written && to.written && *to.written > *from.written;
  const std::uint64_t own = growth(from.ticks, to.ticks);
  // NCCL computes while it waits.
  const bool stirs = !polls && own >= few && static_cast<double>(own) / 100 >= stir * seconds;
  rank.moved = wrote || before != after || (waits_for_others(rank.doing) ? stirs : work_of(rank) >= busy);
  rank.waited = waits_for_others(before.doing) && waits_for_others(after.doing);
  rank.worked = !waits_for_others(before.doing) && !waits_for_others(after.doing);
  add_silence(rank, now);
  return rank;
}

std::vector<RankLook> ranks_in(const WhySample& sample, const Entered& entered, ExactInstant now) {
  std::vector<RankLook> ranks;
  const WhyAnswer::Look& second = sample.answer.looks[1];
  std::map<std::string, std::vector<std::pair<int, std::optional<int>>>> roots;
  for (const auto& [pid, state] : second.ranks) {
    roots[state.id].emplace_back(pid, state.rank);
  }
  for (const Job& job : sample.jobs) {
    auto& of_job = roots[job.id.text()];
    const auto has_rank = [](const auto& root) { return root.second.has_value(); };
    if (std::ranges::any_of(of_job, has_rank)) {  // an agent is also a Python process, but not a rank
      std::erase_if(of_job, [&](const auto& root) { return !has_rank(root); });
    }
    const auto stack = std::ranges::find(second.stacks, job.id.text(), &wire::ProcessStack::id);
    if (of_job.empty() && stack != second.stacks.end()) {
      of_job.emplace_back(stack->pid, job.rank);
    }
    for (const auto& [pid, number] : of_job) {
      ranks.push_back(look_at(sample, job, pid, number ? number : job.rank, entered, now));
    }
    if (of_job.empty()) {
      RankLook gone{.job = job, .rank = job.rank, .doing = RankDoing::ended};
      ranks.push_back(gone);
    }
  }
  return ranks;
}

std::vector<WhyGroup> group(std::vector<RankLook> ranks) {
  std::map<std::tuple<RankDoing, std::string, std::string, std::string, int>, WhyGroup> by_place;
  for (RankLook& rank : ranks) {
    const std::string file = rank.file.substr(rank.file.rfind('/') + 1);
    const std::string kernel = rank.doing == RankDoing::kernel ? rank.kernel : "";
    auto& ranks_there = by_place[{rank.doing, kernel, rank.function, file, rank.line}].ranks;
    ranks_there.push_back(std::move(rank));
  }
  std::vector<WhyGroup> groups;
  for (auto& [place, one] : by_place) {
    std::ranges::sort(one.ranks, {}, [](const RankLook& rank) { return std::pair(rank.rank, rank.job.key); });
    groups.push_back(std::move(one));
  }
  return groups;
}

std::vector<WhyLink> links_between(const std::vector<WhySample>& samples) {
  std::vector<WhyLink> links;
  for (const WhySample& from : samples) {
    for (const WhySample& to : samples) {
      if (from.server != to.server &&
          std::ranges::any_of(from.answer.silent, [&](const std::string& address) {
            return to.answer.addresses.contains(address) && !from.answer.addresses.contains(address);
          })) {
        links.push_back({from.server, to.server});
      }
    }
  }
  return links;
}

WhyServer server_in(const WhySample& sample) {
  WhyServer server{.server = sample.server, .storage_hangs = sample.answer.facts.disks_hang};
  for (const DiskFacts& disk : sample.answer.facts.facts.disks) {
    const std::uint64_t too_little = std::min(std::uint64_t{1} << 20U, disk.total_bytes / 1000);
    const bool full = disk.total_bytes > 0 && disk.free_bytes <= too_little;
    if (full || (disk.inodes > 0 && disk.free_inodes == 0)) {
      server.full_disk = disk;
      break;
    }
  }
  for (const Job& job : sample.jobs) {
    if (job.reason.kind == JobReason::Kind::no_lifeline) {
      server.lifeline = job.reason.text;
    }
  }
  double sum = 0;
  int count = 0;
  for (const Gpu& gpu : sample.answer.facts.facts.gpus.gpus) {
    sum += gpu.utilisation.value_or(0);
    count += gpu.utilisation ? 1 : 0;
  }
  if (count > 0) {
    server.gpu_use = sum / count;
  }
  return server;
}

// If all ranks make progress: the one that the others wait for most of the time. When ranks wait for each
// other in every step, the slow one is busy all the time.
RankLook* slow_one(std::vector<RankLook>& ranks, double& factor) {
  if (ranks.size() < 2) {
    return nullptr;
  }
  std::vector<RankLook*> by_work;
  std::ranges::transform(ranks, std::back_inserter(by_work), [](RankLook& rank) { return &rank; });
  std::ranges::sort(by_work, std::greater<>(), [](const RankLook* rank) { return work_of(*rank); });
  const double most = work_of(*by_work[0]);
  const double next = work_of(*by_work[1]);
  if (most < full_share || most < next * slow_factor || !by_work[0]->worked ||
      !std::all_of(by_work.begin() + 1, by_work.end(), [](const RankLook* rank) { return rank->waited; })) {
    return nullptr;
  }
  factor = most / std::max(next, 0.01);
  return by_work[0];
}

bool same_rank(const RankLook& one, const RankLook& other) {
  return one.job.id == other.job.id && one.pid == other.pid;
}

// Marks groups that differ from most of the waiting ones.
void mark(Why& why, const auto& is_odd) {
  for (WhyGroup& one : why.groups) {
    one.odd = is_odd(one);
  }
}

void decide(Why& why, std::vector<RankLook>& ranks) {
  const auto doing = [](RankDoing what) {
    return [what](const RankLook& rank) { return rank.doing == what; };
  };
  const auto waits = [](const RankLook& rank) { return waits_for_others(rank.doing); };
  const std::size_t waiting = std::ranges::count_if(ranks, waits);
  const std::size_t unseen = std::ranges::count_if(ranks, doing(RankDoing::unreachable));
  const std::size_t ended = std::ranges::count_if(ranks, doing(RankDoing::ended));
  const std::size_t seen = ranks.size() - unseen - ended;
  const bool waiter_moved =
      std::ranges::any_of(ranks, [&](const RankLook& rank) { return waits(rank) && rank.moved; });
  const auto group_waits = [&](const WhyGroup& one) { return waits(one.ranks.front()); };
  const std::size_t waiting_groups = std::ranges::count_if(why.groups, group_waits);
  if (seen == 0) {
    why.kind = WhyKind::unknown;
  } else if (RankLook* slow = slow_one(ranks, why.factor); slow != nullptr && waiter_moved) {
    why.kind = WhyKind::slow;
    mark(why, [&](const WhyGroup& one) {
      return std::ranges::any_of(one.ranks, [&](const RankLook& rank) { return same_rank(rank, *slow); });
    });
  } else if (waiter_moved ||
             std::ranges::all_of(ranks, [&](const RankLook& rank) { return rank.moved && !waits(rank); })) {
    why.kind = WhyKind::moving;
  } else if (waiting > 0 && !why.links.empty()) {
    why.kind = WhyKind::link;
  } else if (waiting > 0 && waiting < seen) {
    why.kind = WhyKind::held_up;
    mark(why, [&](const WhyGroup& one) {
      return !group_waits(one) && one.ranks.front().doing != RankDoing::unreachable;
    });
  } else if (waiting > 0 && ended > 0) {
    why.kind = WhyKind::ended;
    mark(why, [](const WhyGroup& one) { return one.ranks.front().doing == RankDoing::ended; });
  } else if (waiting > 0 && unseen > 0) {
    why.kind = WhyKind::unknown;  // the cause may be in ranks that are not visible
    mark(why, [](const WhyGroup& one) { return one.ranks.front().doing == RankDoing::unreachable; });
  } else if (waiting_groups > 1) {
    const auto peers = std::ranges::any_of(ranks, doing(RankDoing::peer));
    why.kind = peers ? WhyKind::standing : WhyKind::mismatch;
    const auto larger = [](const WhyGroup& a, const WhyGroup& b) { return a.ranks.size() < b.ranks.size(); };
    const std::size_t most = std::ranges::max_element(why.groups, larger)->ranks.size();
    mark(why, [&](const WhyGroup& one) { return one.ranks.size() < most; });
  } else if (waiting > 0) {
    why.kind = WhyKind::same_place;
  } else {
    why.kind = WhyKind::standing;
    const bool some_move = std::ranges::any_of(ranks, &RankLook::moved);
    mark(why, [&](const WhyGroup& one) { return some_move && !one.ranks.front().moved; });
  }
}

}  // namespace

Why judge(const std::vector<WhySample>& samples, const std::vector<Job>& others, ExactInstant now) {
  Why why;
  std::vector<wire::FlightEntry> flights;
  for (const WhySample& sample : samples) {
    std::ranges::copy(sample.answer.flights, std::back_inserter(flights));
  }
  why.collectives = collectives_in(flights);
  const Entered entered = find_entered(why.collectives);
  std::vector<RankLook> ranks;
  for (const WhySample& sample : samples) {
    std::ranges::move(ranks_in(sample, entered, now), std::back_inserter(ranks));
    why.servers.push_back(server_in(sample));
    why.between = std::max(why.between, sample.answer.looks[1].at - sample.answer.looks[0].at);
  }
  for (const Job& job : others) {
    RankLook& rank = ranks.emplace_back();
    rank.job = job;
    rank.rank = job.rank;
    rank.doing = is_final(job.state) ? RankDoing::ended : RankDoing::unreachable;
  }
  why.links = links_between(samples);
  why.groups = group(ranks);
  decide(why, ranks);
  std::ranges::sort(why.servers, {}, &WhyServer::server);
  std::ranges::stable_sort(why.groups, {}, [](const WhyGroup& one) {
    return std::tuple(!one.odd, one.ranks.size(), one.ranks.front().rank);
  });
  return why;
}

}  // namespace remote::jobs
