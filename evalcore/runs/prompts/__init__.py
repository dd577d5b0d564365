"""What models are asked, and how judges' replies are read.

The texts are files in `texts/`. A prompt's version is a hash over everything that can change an answer, and a part of the identity of
every verdict it brings; `versions.txt` holds the versions as they are, so that nobody changes a prompt unawares.

A response that is judged may hold anything, also words meant for the judge. So it is data: between lines that carry a mark made for the one
call, with our task before and after it, in the turn of the user alone. `suspects` tells which responses hold such words.
"""

from evalcore.runs.prompts.answering import AnswerPrompt, conversation, qa
from evalcore.runs.prompts.blocks import new_fence
from evalcore.runs.prompts.judging import CONFIDENCE_MEANING, AcuityJudgePrompt, JudgePrompt, acuity_judge, judge
from evalcore.runs.prompts.replies import Judged
from evalcore.runs.prompts.suspicion import suspects

__all__ = [
    "CONFIDENCE_MEANING",
    "AcuityJudgePrompt",
    "AnswerPrompt",
    "JudgePrompt",
    "Judged",
    "acuity_judge",
    "conversation",
    "judge",
    "new_fence",
    "qa",
    "suspects",
]
