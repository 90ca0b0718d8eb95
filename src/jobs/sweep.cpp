#include "jobs/sweep.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_tail_lines = 500;

servers::Action<SweepAnswer> action_on(const RemoteFolder& folder, const std::string& activate) {
  servers::Action<SweepAnswer> action;
  action.script = job_script(folder, "actions/sweep.sh");
  action.script.set("activate", activate);
  action.timeout = std::chrono::seconds(60);
  return action;
}

}  // namespace

void SweepAnswer::take(servers::AnswerLine& line) {
  if (line.kind() != "sweep") {
    line.refuse_kind();
  }
  const std::string_view word = line.word();
  if (word == "began") {
    began = true;
  } else if (word == "runner") {
    runner = line.choice<SweepRunner>(line.word(),
                                      {{"alive", SweepRunner::alive},
                                       {"dead", SweepRunner::dead},
                                       {"stopped", SweepRunner::stopped},
                                       {"done", SweepRunner::done},
                                       {"none", SweepRunner::none}},
                                      "an unknown state");
  } else if (word == "note") {
    note = line.rest().substr(1);
  } else if (word == "given") {
    const JobId id = id_word(line);
    given[id] = line.word();
  } else if (word == "begun") {
    begun.push_back(id_word(line));
  } else if (word == "tail") {
    std::vector<std::string>& lines = tails[id_word(line)];
    const std::string_view text = line.rest();
    if (!text.starts_with('|')) {
      line.refuse("a line has no mark");
    }
    if (lines.size() < most_tail_lines) {
      lines.emplace_back(text.substr(1));
    }
  } else {
    line.refuse("an unknown word");
  }
}

servers::Action<SweepAnswer> sweep_begin_action(const RemoteFolder& folder, const std::string& own,
                                                const SweepRun& run, const SweepPoints* points,
                                                const std::vector<JobId>& busy, const std::string& activate) {
  Json json = Json::object();
  if (points != nullptr) {
    JobTexts texts = job_texts(folder, points->requests, !points->lease.empty());
    json["points"] =
        Json{{"head", std::move(texts.head)}, {"own", std::move(texts.own)}, {"tail", std::move(texts.tail)},
             {"slots", points->slots},        {"lease", points->lease},      {"retry", points->retry}};
  }
  json["run"] =
      Json{{"own", own},       {"token", run.token}, {"servers", run.servers}, {"address", run.address},
           {"port", run.port}, {"ids", run.ids}};
  Json& there = json["run"]["busy"] = Json::array();
  for (const JobId& id : busy) {
    there.push_back(id.text());
  }
  servers::Action<SweepAnswer> action = action_on(folder, activate);
  action.what = "start of a sweep";
  action.script.call("sweep_begin", {run.launch.text()});
  action.input = dump_json_line(json);
  action.watchful = true;
  return action;
}

servers::Action<SweepAnswer> sweep_action(const RemoteFolder& folder, const SweepQuestion& question,
                                          const std::string& activate) {
  servers::Action<SweepAnswer> action = action_on(folder, activate);
  const SweepAsk ask = question.ask;
  const char* mode = ask == SweepAsk::stop ? "stop" : ask == SweepAsk::drop ? "drop" : "look";
  action.what = std::string(mode) + " at a sweep";
  action.script.call("sweep_ask", {mode, question.launch.text()});
  for (const JobId& id : question.waiting) {
    action.input += "w " + id.text() + "\n";
  }
  for (const JobId& id : question.tails) {
    action.input += "t " + id.text() + "\n";
  }
  action.max_output = (std::size_t{1} << 20U) + question.waiting.size() * 256 +
                      question.tails.size() * (std::size_t{256} << 10U);
  return action;
}

}  // namespace remote::jobs
