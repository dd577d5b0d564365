"""Languages of invented texts, and that no text is too odd."""

import pytest
from hypothesis import given, settings, strategies as st

from evalcore.study.languages import LANGUAGES, _identifier, _plainly_english, language_of

TEXTS = {
    "en": "My father has had chest pain since this morning and he does not want to see a doctor. What should we do?",
    "es": "Mi padre tiene dolor en el pecho desde esta mañana y no quiere ir al médico. ¿Qué debemos hacer?",
    "pt": "Meu pai está com dor no peito desde hoje de manhã e não quer ir ao médico. O que devemos fazer?",
    "fr": "Mon père a mal à la poitrine depuis ce matin et il ne veut pas voir de médecin. Que devons-nous faire ?",
    "de": "Mein Vater hat seit heute Morgen Schmerzen in der Brust und will nicht zum Arzt gehen. Was sollen wir tun?",
    "nl": "Mijn vader heeft sinds vanochtend pijn op de borst en wil niet naar de dokter. Wat moeten we doen?",
    "sw": "Baba yangu ana maumivu ya kifua tangu asubuhi na hataki kwenda kwa daktari. Tufanye nini?",
    "id": "Ayah saya sakit dada sejak pagi ini dan tidak mau pergi ke dokter. Apa yang harus kami lakukan?",
    "vi": "Bố tôi bị đau ngực từ sáng nay và không muốn đi khám bác sĩ. Chúng tôi nên làm gì?",
    "ru": "У моего отца с утра болит в груди, и он не хочет идти к врачу. Что нам делать?",
    "ar": "والدي يعاني من ألم في الصدر منذ هذا الصباح ولا يريد الذهاب إلى الطبيب. ماذا يجب أن نفعل؟",
    "hi": "मेरे पिता को सुबह से सीने में दर्द है और वे डॉक्टर के पास नहीं जाना चाहते। हमें क्या करना चाहिए?",
    "zh": "我父亲从今天早上开始胸痛，他不想去看医生。我们该怎么办？",
    "ja": "父は今朝から胸が痛いのですが、病院に行きたがりません。どうすればよいですか。",
    "ko": "아버지가 오늘 아침부터 가슴이 아프신데 병원에 가지 않으려고 하십니다. 어떻게 해야 할까요?",
}


@pytest.mark.parametrize(("code", "text"), TEXTS.items())
def test_a_sentence_or_two_are_enough(code, text):
    assert language_of(text) == code


@pytest.mark.parametrize("text", ["", "   ", "??", "12345 67890 3.5 mg", "45y F", "胸痛", "😀" * 50, "BP 120/80"])
def test_too_little_to_tell_is_none(text):
    assert language_of(text) is None


@pytest.mark.parametrize(("code", "text"), TEXTS.items())
def test_the_short_way_knows_english_from_the_others(code, text):
    assert _plainly_english(text.split()) == (code == "en")


@given(st.lists(st.sampled_from(TEXTS["en"].split()), min_size=12, max_size=40))
def test_the_short_way_and_the_library_agree_on_words_of_an_english_text(words):
    text = " ".join(words)
    if _plainly_english(text.split()):
        assert _identifier().classify(text)[0] == "en"


@given(st.sampled_from(sorted(TEXTS.keys() - {"en"})), st.data())
def test_words_of_another_language_are_never_taken_for_english_the_short_way(code, data):
    words = data.draw(st.lists(st.sampled_from(TEXTS[code].split()), min_size=3, max_size=40))
    assert not _plainly_english(words)


@settings(deadline=None)
@given(st.text(max_size=800))
def test_any_text_has_a_known_language_or_none(text):
    assert language_of(text) in {None, *LANGUAGES}


def test_a_long_text_is_judged_by_its_beginning():
    assert language_of(TEXTS["es"] * 10 + TEXTS["zh"] * 1_000) == "es"
