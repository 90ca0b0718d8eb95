#include "servers/load.hpp"

#include <remote/error.hpp>

#include "servers/gpu_vendors.hpp"

namespace remote::servers {
namespace {

constexpr std::uint64_t kibibyte = 1024;
constexpr std::uint64_t most_kibibytes = std::uint64_t{1} << 50U;

}  // namespace

void add_load(Script& script) {
  script.add("actions/top.sh").call("top_host");
  script.call("tell_gpus", {"brief"});
}

bool LoadAnswer::takes(std::string_view kind) {
  return kind == "load" || kind == "memory" || kind == "disk" || GpuAnswer::takes(kind);
}

void LoadAnswer::take(AnswerLine& line) {
  if (GpuAnswer::takes(line.kind())) {
    gpus_.take(line);
    return;
  }
  if (line.kind() == "load") {
    if (seen_) {
      line.refuse("a line stands twice");
    }
    seen_ = true;
    load_.cpus = line.number(1, 1 << 20);
    const std::optional<double> average = number_between(line.word(), 0, 1e9);
    if (!average) {
      line.refuse("a load is wrong");
    }
    load_.load = *average;
    busy_ = line.number<std::uint64_t>(0);
    all_ = line.number<std::uint64_t>(0);
  } else if (line.kind() == "memory") {
    load_.memory_total = line.number<std::uint64_t>(0, most_kibibytes) * kibibyte;
    load_.memory_available = line.number<std::uint64_t>(0, most_kibibytes) * kibibyte;
  } else if (line.kind() == "disk") {
    load_.disk_total = line.number<std::uint64_t>(0, most_kibibytes) * kibibyte;
    load_.disk_free = line.number<std::uint64_t>(0, most_kibibytes) * kibibyte;
  } else {
    line.refuse_kind();
  }
  line.end();
}

void LoadAnswer::check() const {
  if (!seen_) {
    throw Error("the server's answer is not understood", "nothing about its load in it")
        .mended_by(Remedy::tell_more);
  }
}

ServerLoad LoadAnswer::load(const std::optional<LoadAnswer>& earlier) const {
  ServerLoad load = load_;
  if (earlier && all_ > earlier->all_ && busy_ >= earlier->busy_ &&
      busy_ - earlier->busy_ <= all_ - earlier->all_) {
    load.cpu =
        100.0 * static_cast<double>(busy_ - earlier->busy_) / static_cast<double>(all_ - earlier->all_);
  }
  return load;
}

Action<LoadAnswer> load_action(std::string_view project) {
  Action<LoadAnswer> action;
  action.what = "load";
  action.script.set_path("project", project);
  add_load(action.script);
  action.script.call("top_end");
  return action;
}

}  // namespace remote::servers
