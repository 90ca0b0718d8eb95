#include "jobs/why_frames.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/strings.hpp"

namespace remote::jobs {
namespace {

struct Frame {
  std::string_view function;
  std::string_view file;
  int line = 0;
};

std::optional<Frame> parse(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  const std::size_t colon = text.rfind(':');
  if (open == std::string_view::npos || colon == std::string_view::npos || colon < open ||
      !text.ends_with(')')) {
    return std::nullopt;
  }
  const auto line = parse_number<int>(text.substr(colon + 1, text.size() - colon - 2));
  return Frame{text.substr(0, open), text.substr(open + 2, colon - open - 2), line.value_or(0)};
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view base_name(std::string_view file) {
  return file.substr(file.rfind('/') + 1);
}

constexpr std::string_view debugger = "remote_debugger.py";

// Whether it is in Python's own modules, an installed package, or a file that --enable-stacks adds to a job.
// py-spy shortens the paths.
bool is_library(std::string_view file) {
  constexpr std::array<std::string_view, 4> of_job{"sitecustomize.py", debugger, "remote_torch_agent.py",
                                                   "remote_torch_rendezvous.py"};
  constexpr std::array<std::string_view, 4> places{"/site-packages/", "/dist-packages/", "/lib/python3", "<"};
  constexpr std::array<std::string_view, 5> packages{"torch/", "multiprocessing/", "concurrent/", "asyncio/",
                                                     "importlib/"};
  constexpr std::array<std::string_view, 11> modules{
      "threading.py", "queue.py", "selectors.py", "socket.py",     "ssl.py",   "subprocess.py",
      "runpy.py",     "bdb.py",   "pdb.py",       "contextlib.py", "codecs.py"};
  return std::ranges::any_of(places, [&](std::string_view one) { return file.find(one) != file.npos; }) ||
         std::ranges::any_of(packages, [&](std::string_view one) { return file.starts_with(one); }) ||
         is_one_of(file, modules) || is_one_of(base_name(file), of_job);
}

constexpr std::array<std::string_view, 21> collectives{"all_reduce",
                                                       "all_reduce_coalesced",
                                                       "all_gather",
                                                       "all_gather_into_tensor",
                                                       "all_gather_coalesced",
                                                       "all_gather_object",
                                                       "all_to_all",
                                                       "all_to_all_single",
                                                       "barrier",
                                                       "monitored_barrier",
                                                       "broadcast",
                                                       "broadcast_object_list",
                                                       "gather",
                                                       "gather_object",
                                                       "reduce",
                                                       "reduce_scatter",
                                                       "reduce_scatter_tensor",
                                                       "scatter",
                                                       "scatter_object_list",
                                                       "allreduce",
                                                       "allgather"};

RankDoing doing_in(const Frame& frame) {
  constexpr std::array<std::string_view, 7> meeting{"init_process_group",      "_store_based_barrier",
                                                    "_create_c10d_store",      "_tcp_rendezvous_handler",
                                                    "_env_rendezvous_handler", "new_group",
                                                    "_file_rendezvous_handler"};
  constexpr std::array<std::string_view, 6> peer{
      "send", "recv", "batch_isend_irecv", "send_object_list", "recv_object_list", "isend"};
  const bool distributed = frame.file.find("distributed") != std::string_view::npos;
  const std::string_view name = base_name(frame.file);
  if (distributed && is_one_of(frame.function, meeting)) {
    return RankDoing::meeting;
  }
  if ((distributed || !is_library(frame.file)) && is_one_of(frame.function, collectives)) {
    return RankDoing::collective;
  }
  if (distributed && is_one_of(frame.function, peer)) {
    return RankDoing::peer;
  }
  if (name == debugger) {
    return RankDoing::traced;
  }
  if (name == "dataloader.py") {
    return RankDoing::data;
  }
  if ((name == "threading.py" || name == "queue.py") && is_library(frame.file)) {
    return RankDoing::lock;
  }
  return RankDoing::waiting;
}

}  // namespace

Place place_of(const std::vector<std::string>& frames) {
  Place place;
  std::optional<Frame> meant;  // the most informative frame in a library: the call nearest to the program
  std::optional<Frame> own;
  for (const std::string& text : frames) {
    const std::optional<Frame> frame = parse(text);
    if (!frame) {
      continue;
    }
    // A lock inside a collective does not count.
    if (const RankDoing doing = doing_in(*frame); doing != RankDoing::waiting) {
      place.doing = doing;
      meant = frame;
    }
    place.in_backward = place.in_backward || (frame->function == "backward" &&
                                              frame->file.find("torch/autograd/") != frame->file.npos);
    own = frame;
    if (!is_library(frame->file)) {
      break;
    }
  }
  if (!own) {
    return place;
  }
  place.file = own->file;
  place.line = own->line;
  place.function = own->function;
  if (place.doing == RankDoing::data) {
    place.function = "DataLoader." + std::string(meant->function);
  } else if (meant && place.doing != RankDoing::lock && place.doing != RankDoing::traced) {
    place.function = meant->function;
  }
  return place;
}

}  // namespace remote::jobs
