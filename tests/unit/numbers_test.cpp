#include "project/report/numbers.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace remote::project {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NumbersOfALine, AsTrainingProgramsPrintThem) {
  EXPECT_THAT(numbers_of("epoch   1  loss 2.0880"),
              ElementsAre(NamedNumber{"epoch", 1}, NamedNumber{"loss", 2.088}));
  EXPECT_THAT(numbers_of("loss=0.31, lr: 1e-3"),
              ElementsAre(NamedNumber{"loss", 0.31}, NamedNumber{"lr", 0.001}));
  EXPECT_THAT(
      numbers_of("Epoch [3/10] Train_Loss: -2.5 | acc = 97.5%"),
      ElementsAre(NamedNumber{"epoch", 3}, NamedNumber{"train_loss", -2.5}, NamedNumber{"acc", 97.5}));
  EXPECT_THAT(numbers_of("step 100/2000 (loss 2.31) grad_norm:0.7, speed 12.5ms"),
              ElementsAre(NamedNumber{"step", 100}, NamedNumber{"loss", 2.31}, NamedNumber{"grad_norm", 0.7},
                          NamedNumber{"speed", 12.5}));
  EXPECT_THAT(numbers_of(" 12%|#2   | 5/40 [00:01<00:09, 9.9it/s, loss=2.5]"),
              ElementsAre(NamedNumber{"loss", 2.5}));
  EXPECT_THAT(numbers_of("\x1b[32mINFO\x1b[0m val/loss 0.5"), ElementsAre(NamedNumber{"val/loss", 0.5}));
  EXPECT_THAT(numbers_of("loss 1 loss 2"), ElementsAre(NamedNumber{"loss", 2}));
}

TEST(NumbersOfALine, OfAnObjectOfJson) {
  EXPECT_THAT(
      numbers_of(R"({"step": 7, "Loss": 0.25, "name": "x", "deep": {"a": 1}, "ok": true, "lr": 1e-4})"),
      ElementsAre(NamedNumber{"step", 7}, NamedNumber{"loss", 0.25}, NamedNumber{"lr", 1e-4}));
  EXPECT_THAT(numbers_of(R"({"loss": 0.25)"), IsEmpty());
  EXPECT_THAT(numbers_of(R"({"<script>": 1, "": 2, "loss": 1e999})"), IsEmpty());
}

TEST(NumbersOfALine, NotWhatMeasuresNothing) {
  for (const char* line : {"rank 2 of 4 on vm",
                           "INFO 2026-11-21 07:30:00 ready",
                           "at 07:30:00",
                           "listening on 127.0.0.1:29500",
                           "torch 1.13.0a0",
                           "checksum 1f3e5",
                           "fe52b0bb4020a27908f78b2e2106f2dd 2",
                           "v 1.2.3",
                           "loss nan",
                           "loss inf",
                           "loss",
                           "loss  ",
                           "12 13 14",
                           "",
                           "loss0.3",
                           "pid 4121",
                           "a.py:12: x",
                           "line 12, in <module>",
                           "the world has 4 ranks",
                           "    torch.manual_seed(42); t.fill_(1.0)"}) {
    EXPECT_THAT(numbers_of(line), IsEmpty()) << line;
  }
  EXPECT_THAT(numbers_of(std::string(100000, 'a') + " 1"), IsEmpty());
  EXPECT_THAT(numbers_of(std::string("\xff\xfe loss \x00 1", 12)), IsEmpty());
}

TEST(Curves, StandOverTheStepWhereThereIsOneAlways) {
  CurveReader reader;
  for (int step = 10; step < 15; ++step) {
    reader.take(fmt::format("epoch 1 step {} loss {}", step, 1.0 / step));
    reader.take(fmt::format("speed {}", step));
  }
  const std::vector<Curve> curves = reader.curves();
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].name, "loss");
  EXPECT_EQ(curves[0].over, "step");
  EXPECT_THAT(curves[0].at, ElementsAre(10, 11, 12, 13, 14));
  EXPECT_EQ(curves[1].over, "");
  EXPECT_THAT(curves[1].at, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Curves, AfterARestartTheStepsThatAreDoneOnceMoreCount) {
  CurveReader reader;
  for (const int step : {0, 1, 2, 3, 2, 3, 4}) {
    reader.take(fmt::format("step {} loss {}", step, step * 2));
  }
  EXPECT_EQ(reader.curves()[0].over, "step");
  EXPECT_THAT(reader.curves()[0].at, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Curves, AStepThatBeginsAnewInEachEpochIsNoAxis) {
  CurveReader reader;
  for (const int number : {0, 1, 2, 3}) {
    reader.take(fmt::format("epoch {} step {} loss 1", number / 2, number % 2));
  }
  EXPECT_EQ(reader.curves()[0].over, "");
  EXPECT_THAT(reader.curves()[0].at, ElementsAre(0, 1, 2, 3));
}

TEST(Curves, LossesComeFirstAndWhatIsNotTheProgramsDoesNotCount) {
  CurveReader reader;
  for (int step = 0; step < 3; ++step) {
    reader.take(fmt::format("acc 0.{}", step));
    reader.take(fmt::format("acc 0.{} task 3 exitcode: 1", step));
    reader.take(fmt::format("val_loss {}", step));
    reader.take("WARNING:torch.distributed.run: attempt 3");
    reader.take("remote: the workers begin anew, wave 3");
    reader.take("[rank0]:[W1126 16:05:40.816896340 ProcessGroupNCCL.cpp:1575] Warning: WARNING: left");
    reader.take("[W1126 16:05:40.816896340 socket.cpp:759] [c10d] retry 4");
    reader.take("/usr/lib/python3/optim.py:50: UserWarning: patience=10 is small");
    reader.take(
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. Process 12403 has "
        "682.00 MiB memory in use.");
    reader.take("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.");
    reader.take(
        "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111: operator(): block: [0,0,0], thread: [0,0,0] "
        "Assertion `index < sizes[i]` failed.");
    reader.take("For debugging consider passing CUDA_LAUNCH_BLOCKING=1");
    reader.take("gpu1:5469:5481 [0] NCCL INFO Channel 00/02 : 0 1");
  }
  const std::vector<Curve> curves = reader.curves();
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].name, "val_loss");
  EXPECT_EQ(curves[1].name, "acc");
}

TEST(Curves, StayBoundedAndKeepTheirEnds) {
  CurveReader reader(100);
  for (int i = 0; i < 100000; ++i) {
    reader.take(fmt::format("step {} loss {} n{} 1", i, i, i));
  }
  const std::vector<Curve> curves = reader.curves();
  ASSERT_FALSE(curves.empty());
  EXPECT_EQ(curves[0].name, "loss");
  EXPECT_TRUE(curves[0].thinned);
  EXPECT_LE(curves[0].values.size(), 200U);
  EXPECT_GE(curves[0].values.size(), 50U);
  EXPECT_EQ(curves[0].at.front(), 0);
  EXPECT_GT(curves[0].at.back(), 97000);
  EXPECT_EQ(curves[0].at.size(), curves[0].values.size());
  EXPECT_TRUE(std::ranges::is_sorted(curves[0].at));
}

TEST(Curves, OneValueIsNoCurve) {
  CurveReader reader;
  reader.take("accuracy 97.5");
  EXPECT_TRUE(reader.curves().empty());
  reader.take("accuracy 97.6");
  EXPECT_EQ(reader.curves().size(), 1U);
  EXPECT_TRUE(reader.curves(2).empty()) << "one value each time that the program has begun";
  reader.take("accuracy 97.7");
  EXPECT_EQ(reader.curves(2).size(), 1U);
}

}  // namespace
}  // namespace remote::project
